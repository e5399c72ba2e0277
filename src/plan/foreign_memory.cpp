#include "plan/foreign_memory.h"

#include <algorithm>
#include <cmath>

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

ScoreBytes scores_of(const Program& program, const SoftwareProfile& profile) {
  ScoreBytes sum;
  if (profile.attention != AttentionKernel::unfused) return sum;
  for (const Region& region : program.regions) {
    if (region.kind != RegionKind::forward) continue;
    for (const Op& op : region.ops) {
      auto work = local_cost(program, op).attention;
      if (!work) continue;
      double bytes = work->square() * (profile.dropout ? kBytesPerScoreWithDropout : kBytesPerScore);
      sum.kept += bytes;
      sum.single = std::max(sum.single, bytes);
    }
  }
  return sum;
}

// Dropout after attention and after the MLP keeps a byte for each element it saw: the whole width, on every rank,
// unless those share the sequence.
double mask_bytes(const Program& program, const RunConfig& run, const SoftwareProfile& profile) {
  if (!profile.dropout) return 0;
  double ranks = run.mesh.sequence_parallel ? 1 : static_cast<double>(run.mesh.tp), sum = 0;
  for (const Region& region : program.regions) {
    if (region.kind != RegionKind::forward) continue;
    for (const Op& op : region.ops)
      if (auto work = local_cost(program, op).attention)
        sum += 2 * work->batch * work->queries * work->heads * work->width_of_values() * ranks;
  }
  return sum;
}

double activation_output_bytes(const Program& program) {
  double sum = 0;
  for (const Region& region : program.regions) {
    if (region.kind != RegionKind::forward) continue;
    for (const Op& op : region.ops)
      if (op.def->gated) sum += static_cast<double>(program[op.outputs[0]].local_bytes().n);
  }
  return sum;
}

// What gathers along the tensor axis leave, beyond the part that our Program keeps.
double gathered_bytes(const Program& program) {
  double sum = 0;
  for (const Region& region : program.regions) {
    if (region.kind != RegionKind::forward) continue;
    for (const Op& op : region.ops) {
      std::optional<Message> message = local_message(program, op);
      if (message && message->kind == Collective::all_gather &&
          all_have_role(program.mesh, message->axes, AxisRole::tensor))
        sum += static_cast<double>(program[op.outputs[0]].local_bytes().n - program[op.inputs[0]].local_bytes().n);
    }
  }
  return sum;
}

// Of one element for each that the rank holds, where our Program needs no memory for the sums of a single microbatch.
double gradient_bytes(const Program& program, const MemoryUse& use, const SoftwareProfile& profile) {
  if (use.gradients.n > 0 || !profile.holds_gradients)
    return static_cast<double>(use.gradients.n) * foreign_gradients(profile);
  double elements = 0;
  for (const Value& value : program.values)
    if (value.kind == ValueKind::parameter) elements += static_cast<double>(value.local.count());
  return elements * profile.gradient_bytes;
}

bool accumulates(const Program& program) {
  return std::ranges::any_of(program.schedule, [](const Action& action) { return action.microbatch > 0; });
}

// Logits are held where the loss is not one kernel: as the GEMM leaves them, in f32, and as gradients; where it is
// written out, in f32 as they are, without their maximum, and as exponentials.
double logit_bytes(const Program& program, const SoftwareProfile& profile) {
  constexpr double kBytesPerLogit = 2 + 4 + 4, kBytesPerLogitWrittenOut = 4 + 4 + 4, kBytesPerLogitOfTheLast = 4;
  if (!profile.loss_in_f32) return 0;
  double most = 0;
  for (const Region& region : program.regions)
    for (const Op& op : region.ops) most = std::max(most, local_cost(program, op).inner);
  double bytes = profile.loss_eager ? kBytesPerLogitWrittenOut : kBytesPerLogit;
  return most * (bytes + (profile.holds_last_logits && accumulates(program) ? kBytesPerLogitOfTheLast : 0));
}

double in_flight(const Program& program) {
  int most = 1;
  for (const Buffer& buffer : program.buffers)
    if (buffer.kind == BufferClass::saved) most = std::max(most, buffer.slots);
  return most;
}

}  // namespace

double foreign_gradients(const SoftwareProfile& profile) {
  constexpr double kOwnGradientBytes = 4;  // f32
  return profile.gradient_bytes / kOwnGradientBytes;
}

double foreign_optimizer(const SoftwareProfile& profile) {
  constexpr double kOwnOptimizerBytes = 10;  // two f32 moments and the low half of the weights
  return profile.optimizer_bytes / kOwnOptimizerBytes;
}

ForeignExtra foreign_extra(const Program& program, const RunConfig& run, const SoftwareProfile& profile) {
  bool keeps_all = run.train.recompute != "full", keeps_scores = keeps_all && !profile.recompute_attention;
  ScoreBytes scores = scores_of(program, profile);
  ForeignExtra extra{.saved = 0, .working = logit_bytes(program, profile) + (keeps_scores ? 0 : scores.single)};
  if (keeps_scores) extra.saved += scores.kept;
  if (keeps_all) extra.saved += mask_bytes(program, run, profile);
  if (keeps_all && profile.keeps_activation_outputs) extra.saved += activation_output_bytes(program);
  if (keeps_all && profile.keeps_gathered) extra.saved += gathered_bytes(program);
  return extra;
}

ForeignMemory foreign_memory(const Program& program, const RunConfig& run, const SoftwareProfile& profile,
                             const Machine& machine) {
  MemoryUse use = memory_use(program);
  ForeignExtra extra = foreign_extra(program, run, profile);
  return {.weights = static_cast<double>(use.weights.n),
          .gradients = gradient_bytes(program, use, profile),
          .optimizer = static_cast<double>(use.optimizer.n) * foreign_optimizer(profile),
          .saved = static_cast<double>(use.saved.n) + extra.saved * in_flight(program),
          .working = static_cast<double>(use.working.n) + extra.working,
          .buffers = profile.buffer_bytes,
          .context = machine.context_bytes};
}

ForeignMemory foreign_memory(const LoweredRun& lowered, const RunConfig& run, const SoftwareProfile& profile,
                             const Machine& machine) {
  ForeignMemory fullest;
  for (const Program& program : lowered.programs.train) {
    ForeignMemory here = foreign_memory(program, run, profile, machine);
    if (here.total() > fullest.total()) fullest = here;
  }
  return fullest;
}

MemoryParts parts_of(const ForeignMemory& memory) {
  return {.weights = std::llround(memory.weights),
          .gradients = std::llround(memory.gradients),
          .optimizer = std::llround(memory.optimizer),
          .activations = std::llround(memory.saved),
          .scratch = std::llround(memory.working),
          .communication = std::llround(memory.buffers),
          .overhead = std::llround(memory.context)};
}

bool fits(const ForeignMemory& memory, const SoftwareProfile& profile, const Machine& machine) {
  return memory.total() + profile.headroom_bytes <= machine.device.memory_bytes;
}

}  // namespace sextant
