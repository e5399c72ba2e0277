#include "plan/foreign_memory.h"

#include <algorithm>

#include "ir/lifetime.h"
#include "passes/memory.h"

namespace sextant {

namespace {

// Probabilities (2), scores after softmax or their mask (1) and dropout's output (2), where they are written and kept.
constexpr double kBytesPerScore = 3, kBytesPerScoreWithDropout = 5;

struct ScoreBytes {
  double kept = 0;    // of all attention ops of one microbatch
  double single = 0;  // of the largest
};

ScoreBytes scores_of(const Program& program, const Stack& stack) {
  ScoreBytes sum;
  if (stack.attention != AttentionKernel::unfused) return sum;
  for (const Region& region : program.regions) {
    if (region.kind != RegionKind::forward) continue;
    for (const Op& op : region.ops) {
      auto work = local_cost(program, op).attention;
      if (!work) continue;
      double bytes = work->square() * (stack.dropout ? kBytesPerScoreWithDropout : kBytesPerScore);
      sum.kept += bytes;
      sum.single = std::max(sum.single, bytes);
    }
  }
  return sum;
}

// Logits are held where the loss is not one kernel: as the product leaves them, in f32, and as gradients.
double logit_bytes(const Program& program, const Stack& stack) {
  constexpr double kBytesPerLogit = 2 + 4 + 4;
  double most = 0;
  for (const Region& region : program.regions)
    for (const Op& op : region.ops) most = std::max(most, local_cost(program, op).inner);
  return stack.loss_in_f32 ? most * kBytesPerLogit : 0;
}

double in_flight(const Program& program) {
  int most = 1;
  for (const Buffer& buffer : program.buffers)
    if (buffer.kind == BufferClass::saved) most = std::max(most, buffer.slots);
  return most;
}

}  // namespace

double foreign_memory(const LoweredRun& lowered, const ForeignRun& run, const Machine& machine) {
  constexpr double kOwnGradientBytes = 4, kOwnOptimizerBytes = 10;  // f32; two f32 moments and the low half of the weights
  double most = 0;
  bool keeps_scores = run.config.train.recompute != "full" && !run.stack.recompute_attention;
  for (const Program& program : lowered.programs.train) {
    MemoryUse use = memory_use(program);
    ScoreBytes scores = scores_of(program, run.stack);
    double bytes = static_cast<double>(use.weights.n) + static_cast<double>(use.gradients.n) * run.stack.gradient_bytes / kOwnGradientBytes +
                   static_cast<double>(use.optimizer.n) * run.stack.optimizer_bytes / kOwnOptimizerBytes + static_cast<double>(use.saved.n) +
                   static_cast<double>(use.working.n) + logit_bytes(program, run.stack) + (keeps_scores ? scores.kept * in_flight(program) : scores.single);
    most = std::max(most, bytes);
  }
  return most + machine.context_bytes;
}

}  // namespace sextant
