#include "plan/foreign_memory.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "ir/lifetime.h"
#include "passes/memory.h"

namespace sextant {

namespace {

// Probabilities (2), scores after softmax or their mask (1) and dropout's output (2), where they are written and kept.
constexpr double kBytesPerScore = 3, kBytesPerScoreWithDropout = 5;

constexpr double kOwnOptimizerBytes = 10;  // two f32 moments and the low half of the weights

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

// Bytes that all-gathers along the tensor axis leave, beyond the shard that our Program keeps.
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

KeptLayers kept_by(const Program& program) {
  std::map<int, double> layers;
  for (const Region& region : program.regions)
    if (region.kind == RegionKind::forward)
      layers[region.chunk] = static_cast<double>(std::ranges::count_if(
          region.ops, [&](const Op& op) { return local_cost(program, op).attention.has_value(); }));
  return kept_layers(program.schedule, layers);
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

KeptLayers kept_layers(std::span<const Action> schedule, const std::map<int, double>& layers) {
  std::map<int, double> kept, most;
  std::set<int> deferred;  // chunks whose weight gradients are made last
  for (const Action& action : schedule)
    if (action.region == RegionKind::weight) deferred.insert(action.chunk);
  KeptLayers out;
  for (const Action& action : schedule) {
    auto found = layers.find(action.chunk);
    const double own = found == layers.end() ? 0 : found->second;
    double& now = kept[action.chunk];
    if (action.region == (deferred.contains(action.chunk) ? RegionKind::weight : RegionKind::backward)) now -= own;
    if (action.region != RegionKind::forward) continue;
    now += own;
    most[action.chunk] = std::max(most[action.chunk], now);
    double all = 0;
    for (const auto& [chunk, count] : kept) all += count;
    out.at_once = std::max(out.at_once, all);
  }
  for (const auto& [chunk, count] : layers) out.of_a_microbatch += count;
  for (const auto& [chunk, count] : most) out.reserved += count;
  return out;
}

double foreign_gradients(const SoftwareProfile& profile) {
  constexpr double kOwnGradientBytes = 4;  // f32
  return profile.gradient_bytes / kOwnGradientBytes;
}

double foreign_optimizer(const SoftwareProfile& profile) {
  return profile.optimizer_bytes / kOwnOptimizerBytes;
}

ForeignExtra foreign_extra(const Program& program, const RunConfig& run, const SoftwareProfile& profile) {
  bool keeps_all = run.train.recompute != RecomputeMode::full, keeps_scores = keeps_all && !profile.recompute_attention;
  ScoreBytes scores = scores_of(program, profile);
  ForeignExtra extra{.saved = 0,
                     .working = logit_bytes(program, profile) + (keeps_scores ? 0 : scores.single) +
                                accumulation_copy_bytes(program, profile)};
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
  KeptLayers layers = kept_by(program);
  ForeignMemory memory{
      .weights = static_cast<double>(use.weights.n),
      .gradients = gradient_bytes(program, use, profile),
      .optimizer = static_cast<double>(use.optimizer.n) * foreign_optimizer(profile),
      .saved = static_cast<double>(use.saved.n) * layers.share_at_once() + extra.saved * in_flight(program, layers),
      .working = static_cast<double>(use.working.n) + extra.working,
      .buffers = profile.buffer_bytes,
      .context = machine.context_bytes};
  // Activations saved by forward are freed before weights are updated, so the update may use their bytes.
  double update = static_cast<double>(use.optimizer.n) / kOwnOptimizerBytes * profile.update_bytes;
  memory.working += std::max(0.0, update - memory.saved - memory.working);
  return memory;
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

double reported_bytes(const ForeignMemory& memory, const SoftwareProfile& profile) {
  return memory.total() - (profile.counts_without_context ? memory.context : 0);
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
