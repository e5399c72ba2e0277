#include "validate/foreign_memory.h"

#include <algorithm>
#include <map>
#include <set>

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
double mask_bytes(const Program& program, const ForeignRun& run) {
  if (!run.profile.dropout) return 0;
  double ranks = run.config.mesh.sequence_parallel ? 1 : static_cast<double>(run.config.mesh.tp), sum = 0;
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
double gradient_bytes(const Program& program, const MemoryUse& use, const ForeignRun& run) {
  constexpr double kOwnGradientBytes = 4;  // f32
  if (use.gradients.n > 0 || !run.profile.holds_gradients)
    return static_cast<double>(use.gradients.n) / kOwnGradientBytes * run.profile.gradient_bytes;
  double elements = 0;
  for (const Value& value : program.values)
    if (value.kind == ValueKind::parameter) elements += static_cast<double>(value.local.count());
  return elements * run.profile.gradient_bytes;
}

// One pass over a gradient of 16 bits and its sum in f32 moves 10 bytes. Software that moves more writes the gradient
// again in f32 first, of one tensor after the other.
double accumulation_copy_bytes(const Program& program, const SoftwareProfile& profile) {
  constexpr int kOnePass = 2 + 4 + 4;
  constexpr double kCopyBytes = 4;
  if (profile.accumulation_bytes <= kOnePass) return 0;
  double largest = 0;
  for (const Value& value : program.values)
    if (value.kind == ValueKind::parameter) largest = std::max(largest, static_cast<double>(value.local.count()));
  return kCopyBytes * largest;
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

// Other software frees what a microbatch keeps of a chunk when its backward has run; our Program has room for the most
// that each chunk ever keeps, at whatever time.
struct KeptLayers {
  double of_a_microbatch = 0;
  double at_once = 0;   // of all chunks and microbatches, at the most
  double reserved = 0;  // the most of each chunk, together
};

KeptLayers kept_layers(const Program& program) {
  std::map<int, double> layers, kept, most;
  std::set<int> deferred;  // chunks whose weight gradients are made last
  for (const Region& region : program.regions) {
    if (region.kind == RegionKind::weight) deferred.insert(region.chunk);
    if (region.kind != RegionKind::forward) continue;
    layers[region.chunk] = static_cast<double>(
        std::ranges::count_if(region.ops, [&](const Op& op) { return local_cost(program, op).attention.has_value(); }));
  }
  KeptLayers out;
  for (const Action& action : program.schedule) {
    double& now = kept[action.chunk];
    RegionKind last = deferred.contains(action.chunk) ? RegionKind::weight : RegionKind::backward;
    if (action.region == last) now -= layers[action.chunk];
    if (action.region != RegionKind::forward) continue;
    now += layers[action.chunk];
    most[action.chunk] = std::max(most[action.chunk], now);
    double all = 0;
    for (const auto& [chunk, count] : kept) all += count;
    out.at_once = std::max(out.at_once, all);
  }
  for (const auto& [chunk, count] : layers) out.of_a_microbatch += count;
  for (const auto& [chunk, count] : most) out.reserved += count;
  return out;
}

// How many times over what forward keeps of one microbatch is there.
double in_flight(const Program& program, const KeptLayers& layers) {
  int most = 1;
  for (const Buffer& buffer : program.buffers)
    if (buffer.kind == BufferClass::saved) most = std::max(most, buffer.slots);
  bool chunks = layers.reserved > layers.at_once;
  return chunks ? layers.at_once / layers.of_a_microbatch : most;
}

}  // namespace

ForeignMemory foreign_memory(const LoweredRun& lowered, const ForeignRun& run, const Machine& machine) {
  constexpr double kOwnOptimizerBytes = 10;  // two f32 moments and the low half of the weights
  const SoftwareProfile& profile = run.profile;
  bool keeps_all = run.config.train.recompute != "full", keeps_scores = keeps_all && !profile.recompute_attention;
  ForeignMemory fullest;
  for (const Program& program : lowered.programs.train) {
    MemoryUse use = memory_use(program);
    ScoreBytes scores = scores_of(program, profile);
    KeptLayers layers = kept_layers(program);
    double copies = in_flight(program, layers);
    double used = layers.reserved > 0 ? layers.at_once / layers.reserved : 1;  // of what our Program reserves
    ForeignMemory here{
        .weights = static_cast<double>(use.weights.n),
        .gradients = gradient_bytes(program, use, run),
        .optimizer = static_cast<double>(use.optimizer.n) * profile.optimizer_bytes / kOwnOptimizerBytes,
        .saved = static_cast<double>(use.saved.n) * used + (keeps_scores ? scores.kept * copies : 0) +
                 (keeps_all ? mask_bytes(program, run) * copies : 0) +
                 (keeps_all && profile.keeps_activation_outputs ? activation_output_bytes(program) * copies : 0) +
                 (keeps_all && profile.keeps_gathered ? gathered_bytes(program) * copies : 0),
        .working = static_cast<double>(use.working.n) + logit_bytes(program, profile) +
                   (keeps_scores ? 0 : scores.single) + accumulation_copy_bytes(program, profile),
        .buffers = profile.buffer_bytes,
        .context = machine.context_bytes};
    // What forward keeps is gone when weights are updated.
    double update = static_cast<double>(use.optimizer.n) * profile.update_bytes / kOwnOptimizerBytes;
    here.working += std::max(0.0, update - here.saved - here.working);
    if (here.total() > fullest.total()) fullest = here;
  }
  return fullest;
}

double reported_bytes(const ForeignMemory& memory, const SoftwareProfile& profile) {
  return memory.total() - (profile.counts_without_context ? memory.context : 0);
}

bool fits(const ForeignMemory& memory, const SoftwareProfile& profile, const Machine& machine) {
  return memory.total() + profile.headroom_bytes <= machine.device.memory_bytes;
}

}  // namespace sextant
