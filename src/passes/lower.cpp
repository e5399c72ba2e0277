#include "passes/lower.h"

#include "base/error.h"
#include "ir/mtp_paths.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "passes/autodiff.h"
#include "passes/check_gemms.h"
#include "passes/freeze.h"
#include "passes/fuse.h"
#include "passes/infer.h"
#include "passes/join_lanes.h"
#include "passes/localize.h"
#include "passes/measure_tensors.h"
#include "passes/memory.h"
#include "passes/offload.h"
#include "passes/overlap.h"
#include "passes/partition.h"
#include "passes/price_format.h"
#include "passes/prune.h"
#include "passes/quantize.h"
#include "passes/recompute.h"
#include "passes/scale_losses.h"
#include "passes/stages.h"

namespace sextant {

namespace {

// After every pass: what must hold is checked, and the observer is called. pass_list.cpp has their names.
class Pipeline {
 public:
  explicit Pipeline(const LowerOptions& options) : options_(options) {}

  template <class Ir>
  void after(std::string_view pass, const Ir& ir, Stage stage) const {
    if (options_.checks == Checks::each_pass || (options_.checks == Checks::end && pass == pass_names().back()))
      verify(ir, stage, pass);
    if (options_.observe) options_.observe(pass, [&] { return print(ir); });
  }

 private:
  const LowerOptions& options_;
};

ValueId require(const Graph& graph, std::string_view path) {
  const Value* value = graph.find(path);
  BUG_IF(!value, "{} has no value '{}'", graph.name, path);
  return value->id;
}

std::vector<Loss> losses_of(const Graph& graph) {
  std::vector<Loss> losses{{require(graph, "loss"), require(graph, "loss_scale")}};
  for (std::string_view path : {"balance_loss", "router_z_loss"})
    if (const Value* more = graph.find(path)) losses.push_back({more->id, require(graph, "balance_scale")});
  for (int64_t depth = 1; const Value* more = graph.find(mtp_paths(depth).loss); ++depth)
    losses.push_back({more->id, require(graph, mtp_paths(depth).scale)});
  return losses;
}

// Without pipeline: each microbatch forward and (in training) backward, one after the other.
PipelineSchedule one_stage(int microbatches, const LowerOptions& options) {
  PipelineSchedule schedule{.name = "one stage", .shape = {.microbatches = microbatches}, .ranks = {{}}};
  for (int m = 0; m < microbatches; ++m) {
    schedule.ranks[0].push_back({RegionKind::forward, 0, m});
    if (options.train) schedule.ranks[0].push_back({RegionKind::backward, 0, m});
  }
  return schedule;
}

// The passes before the cut into pipeline ranks.
void lower_graph(Graph& graph, const PipelineSchedule& schedule, const LowerOptions& options,
                 const Pipeline& pipeline) {
  // Each op learns which stage of the pipeline runs it; what is added later for an op goes where that op is.
  std::vector<int> blocks = options.blocks_per_stage;
  if (blocks.empty()) blocks = balanced_blocks(graph, schedule.shape.stages());
  assign_stages(graph, blocks);

  // The losses to differentiate, with their given gradients: the model's loss and the auxiliary losses.
  std::vector<Loss> losses;
  if (options.train) losses = losses_of(graph);
  if (options.train && options.loss_scaling) scale_losses(graph, *options.loss_scaling, losses);

  // The model as it was written: global shapes, forward only, no communication.
  pipeline.after("build", graph, Stage::built);

  // Layouts come first: a gradient's layout is the dual of its value's, so backward must see them.
  infer(graph, Phase::forward);
  pipeline.after("infer", graph, Stage::inferred);

  if (options.train) {
    // Backward ops, from each op's own rule. What they read of forward is what must be saved.
    autodiff(graph, {std::move(losses), options.plan.zero, options.plan.exact_parts});
    prune(graph);
    pipeline.after("autodiff", graph, Stage::inferred);
  }

  // Linears become products in fp8, where the run asks for them: forward and gradients alike, so backward must be
  // there. In a format that is only planned they stay, and are named.
  quantize(graph, options.quantization);
  if (options.quantization.recipe) prune(graph);
  price_format(graph, options.quantization);
  pipeline.after("quantize", graph, Stage::inferred);

  if (options.train) {
    // Only now is it known what is saved, so only now can some of it be computed again instead.
    recompute(graph, options.plan.recompute);
    prune(graph);
    pipeline.after("recompute", graph, Stage::inferred);

    // Measurements, on which nothing is trained, are added next to the ops of training.
    SmallGradients small_gradients = measure_tensors(graph, options.measures);

    // Norm, clipping and optimizer read the finished gradients.
    append_update(
        graph, {*options.train, options.plan.zero,
                [&](int stage) { return rank_of_stage(schedule.shape, schedule.placement, stage); }, options.measures,
                std::move(small_gradients), options.plan.offload, options.plan.exact_parts > 0, options.loss_scaling});
    pipeline.after("update", graph, Stage::inferred);
  }

  // Ops whose work on a shard is not simply the same op on less data become the ops that do it.
  localize(graph);
  pipeline.after("localize", graph, Stage::built);
}

// The passes after it; `beside` has arenas that the Program shares, or is null.
void lower_rank(Program& program, const Target& target, const Program* beside, const LowerOptions& options,
                const Pipeline& pipeline) {
  pipeline.after("partition", program, Stage::partitioned);

  // Neighbours become one op where the target has a kernel for both at once.
  fuse(program, target);
  pipeline.after("fuse", program, Stage::partitioned);

  // Messages that can travel while the rank computes get a lane of their own, and leave early.
  overlap(program, {options.plan.bucket, options.plan.overlap ? Lanes::on : Lanes::off});
  pipeline.after("overlap", program, Stage::partitioned);

  // Copies move tensors that are kept on the host to it and back, and ops on these tensors run there.
  offload(program, {options.plan.offload, options.plan.overlap ? Lanes::on : Lanes::off});
  pipeline.after("offload", program, Stage::partitioned);

  // A lane waits for the values that the other lane makes for it, once and no earlier than needed.
  join_lanes(program);
  pipeline.after("join_lanes", program, Stage::partitioned);

  // Products that may be checked while they run say so: they need scratch for it.
  if (options.check_gemms > 0) mark_checked_gemms(program, target, options.check_gemms);
  pipeline.after("check_gemms", program, Stage::partitioned);

  // Every byte gets its place. After this the arena's size is known exactly.
  plan_memory(program, target, beside);
  pipeline.after("memory", program, Stage::planned);

  // Drop what nothing touches. From here on the Program is only read.
  freeze(program);
  pipeline.after("freeze", program, Stage::final);
}

}  // namespace

std::vector<Program> lower_all(Graph graph, const Target& target, const LowerOptions& options) {
  Pipeline pipeline(options);
  PipelineSchedule schedule = options.pipeline ? *options.pipeline : one_stage(options.plan.microbatches, options);
  lower_graph(graph, schedule, options, pipeline);

  // From the global view to one rank's: local shapes, its stages' regions and messages, and the order in which they
  // run.
  std::vector<Program> programs = partition_all(std::move(graph), schedule, options.plan.deferred);
  for (size_t rank = 0; rank < programs.size(); ++rank)
    lower_rank(programs[rank], target, options.beside ? &(*options.beside)[rank] : nullptr, options, pipeline);
  return programs;
}

Program lower(Graph graph, const Target& target, const LowerOptions& options) {
  std::vector<Program> programs = lower_all(std::move(graph), target, options);
  BUG_IF(programs.size() != 1, "{} pipeline ranks where one was expected", programs.size());
  return std::move(programs.front());
}

}  // namespace sextant
