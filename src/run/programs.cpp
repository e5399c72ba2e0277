#include "run/programs.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>

#include "base/error.h"
#include "base/files.h"
#include "config/mesh_axes.h"
#include "config/microbatches.h"
#include "config/resolve.h"
#include "config/ring_order.h"
#include "ir/lane.h"
#include "models/model.h"
#include "ops/fp8_recipe.h"
#include "ops/row_queues.h"
#include "passes/stages.h"
#include "schedule/check.h"
#include "schedule/folded.h"
#include "schedule/from_csv.h"
#include "schedule/schedules.h"

namespace sextant {

namespace {

[[noreturn]] void refuse_format(const RunConfig& run, const BlockFormat& format) {
  throw UserError({.place = run.place_of("train.precision"),
                   .got = fmt::format("a format of later devices, which nothing here runs yet ({})", format.text()),
                   .expected = "one of the other words of train.precision",
                   .hint = "`plan --machine` plans it for machines that have it, such as b200"});
}

// The share of products that are checked; that of collectives is not part of a Program, but needs the same executor.
double checked_gemms(const RunConfig& run, const Target& target) {
  struct AskedCheck {
    const char* key;
    double share;
    bool has_it;
  };
  for (const auto& [key, share, has_it] :
       {AskedCheck{"train.check_gemms", run.train.check_gemms, target.can_check != nullptr},
        AskedCheck{"train.check_collectives", run.train.check_collectives, target.checks_between_ranks}})
    if (share > 0 && !has_it)
      throw UserError({.place = run.place_of(key),
                       .got = fmt::format("{} on a device ({}) that has no such check", share, target.name),
                       .expected = "0, or device = \"cpu\"",
                       .hint = "train.check_replicas_every works on every device"});
  return run.train.check_gemms;
}

// Of everything that is not a product in fp8.
DType precision_of(const RunConfig& run, const Target& target) {
  const BlockFormat* format = find_block_format(run.train.precision);
  if (format && std::ranges::count(target.priced_formats, format->name()) == 0) refuse_format(run, *format);
  const std::optional<DType> own = choice_of(run.train.precision).computes_in;
  if (!own) return target.computes_in.front();
  const DType wanted = *own;
  if (std::find(target.computes_in.begin(), target.computes_in.end(), wanted) != target.computes_in.end())
    return wanted;
  throw UserError({.place = run.place_of("train.precision"),
                   .got = fmt::format("the {} does not compute in {}", target.name, word_of(run.train.precision)),
                   .expected = fmt::format("\"{}\" or \"auto\"", name_of(target.computes_in.front()))});
}

// A run that asks for fp8 and has no product in it would only look like one.
void require_fp8(const RunConfig& run, const Fp8Recipe& recipe, const std::vector<Program>& programs) {
  std::map<std::string, int> wide;
  for (const Program& program : programs)
    for (const Region& region : program.regions)
      for (const Op& op : region.ops) {
        if (recipe.made(op)) return;
        if (op.attrs.has("kept_wide")) ++wide[op.attrs.text_or("kept_wide", "")];
      }
  std::string reasons;
  for (const auto& [reason, count] : wide)
    reasons += fmt::format("{}{} of them: {}", reasons.empty() ? "" : ", ", count, reason);
  throw UserError({.place = run.place_of("train.precision"),
                   .got = fmt::format("{} with no product in fp8 ({})", recipe.name(), reasons),
                   .expected = "a linear in a block whose sizes on a rank fp8 takes",
                   .hint = "`explain --after quantize --op linear` shows why each stays wide"});
}

// Narrow gradients are narrow where weights are.
DType gradients_of_experts(const RunConfig& run, const Target& target) {
  return run.train.expert_gradients == DType::bf16 ? precision_of(run, target) : DType::f32;
}

std::optional<LossScaling> loss_scaling_of(const RunConfig& run) {
  const LossScaleSection& scale = run.train.loss_scale;
  const double initial = run.train.first_loss_scale();
  if (initial == 0) return std::nullopt;
  return {{.initial = initial,
           .growth_factor = scale.growth_factor,
           .backoff = scale.backoff,
           .growth_interval = scale.growth_interval,
           .minimum = scale.minimum}};
}

// The rounds in which a step may be repeated. Those that are tried in vain, each at least doubled, are together fewer
// than the ones that serve.
std::vector<int64_t> repeated_in(int64_t all) {
  std::vector<int64_t> rounds;
  for (int64_t some = 2; some < all; some *= 2) rounds.push_back(some);
  if (all > 1) rounds.push_back(all);
  return rounds;
}

[[noreturn]] void refuse_noise_scale(const RunConfig& run, std::string got, std::string expected) {
  throw UserError({.place = run.place_of("log.grad_noise_scale"),
                   .got = std::move(got),
                   .expected = std::move(expected),
                   .hint = "it compares the gradient of a part of the batch with that of all of it"});
}

void require_like_gradients(const RunConfig& run, const RunShape& shape) {
  if (run.mesh.ep > 1)
    refuse_noise_scale(run, "experts whose gradients are of other tokens than those of the rest of the model",
                       "mesh.ep = 1");
  if (shape.pipeline.placement == StagePlacement::both_ways)
    refuse_noise_scale(run, "a schedule with two copies of the model", "another pipeline.schedule");
}

int64_t parts_of_microbatches(const RunConfig& run, const std::vector<Program>& programs) {
  int64_t parts = 0;
  for (const Program& program : programs) parts = std::max(parts, small_gradient_parts(program));
  int64_t microbatches = run.batch.sequences / (run.batch.microbatch * programs[0].mesh.ranks(AxisRole::data));
  if (parts * microbatches < 2)
    refuse_noise_scale(
        run, "one microbatch, whose gradient no rank has a part of",
        "several microbatches (batch.sequences, batch.microbatch), or mesh.dp > 1 with mesh.zero below 2");
  return parts;
}

// Rows of experts are told apart by numbers of 32 bits.
void require_numbers_of_rows(const RunConfig& run, const Graph& graph) {
  constexpr int64_t kLargest = std::numeric_limits<int32_t>::max();
  for (const Op& op : graph.ops) {
    std::optional<RowQueues> queues = row_queues_of(op);
    if (!queues || numbers_of_rows(graph, op) <= kLargest) continue;
    bool by_token = queues->dispatch == ExpertDispatch::tokens;
    throw UserError(
        {.place = run.place_of(by_token ? "mesh.expert_dispatch" : "batch.microbatch"),
         .got = fmt::format("\"{}\" gives {} numbers to the {} tokens that go to experts together",
                            word_of(queues->dispatch), numbers_of_rows(graph, op), queues->tokens),
         .expected =
             fmt::format("at most {}{}", kLargest, by_token ? ", tokens × experts; \"rows\" needs fewer numbers" : ""),
         .hint = "a smaller batch.microbatch or batch.seq, or a larger mesh.cp, sends fewer tokens together"});
  }
}

// "7,8,8,7": layers of each stage. The first may have the embedding alone, the last the loss.
std::vector<int> stage_layers(const RunConfig& run, const ModelSpec& spec, int stages) {
  std::vector<int> layers;
  int64_t total = 0;
  std::string_view text = run.pipeline.layers;
  while (!text.empty()) {
    int count = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
    bool at_end = layers.empty() || static_cast<int>(layers.size()) + 1 == stages;
    bool good = error == std::errc{} && count >= (at_end ? 0 : 1) && (end == text.data() + text.size() || *end == ',');
    if (!good)
      throw UserError({.place = run.place_of("pipeline.layers"),
                       .got = fmt::format("'{}'", run.pipeline.layers),
                       .expected = "layers of each stage, such as 7,8,8,7; none but in the first and the last"});
    layers.push_back(count);
    total += count;
    text.remove_prefix(std::min(text.size(), static_cast<size_t>(end - text.data()) + 1));
  }
  if (!layers.empty() && (static_cast<int>(layers.size()) != stages || total != spec.layers))
    throw UserError({.place = run.place_of("pipeline.layers"),
                     .got = fmt::format("{} stages with {} layers in all", layers.size(), total),
                     .expected = fmt::format("{} stages (pp × chunks) with {} layers in all", stages, spec.layers)});
  return layers;
}

// The microbatches of all ranks, times the ranks that work on one of them together: neither depends on how the data and
// the layers are divided.
int64_t exact_parts_of(const RunConfig& run, const Mesh& mesh) {
  if (!is_reproducible_on_meshes(run)) return 0;
  int64_t together = mesh.world_size() / mesh.ranks(AxisRole::data) / mesh.ranks(AxisRole::pipeline);
  return run.batch.sequences / run.batch.microbatch * together;
}

// As it is drawn, with both copies where there are two.
PipelineSchedule schedule_of(const RunConfig& run, const Mesh& mesh) {
  int ranks = mesh.ranks(AxisRole::pipeline);
  int64_t microbatches = microbatches_per_rank(run, mesh.ranks(AxisRole::data));
  PipelineShape shape{ranks, static_cast<int>(run.pipeline.chunks), static_cast<int>(microbatches)};
  const ScheduleDef* def = find_schedule(run.pipeline.schedule);
  PipelineSchedule schedule;
  if (ranks == 1 && !(def && def->one_rank)) {  // one stage: a microbatch after the other
    shape.chunks = 1;
    schedule = make_schedule(*find_schedule(ScheduleKind::one_f_one_b), shape);
  } else if (def) {
    schedule = make_schedule(*def, shape, run.place_of("pipeline.schedule"));
  } else {
    schedule = schedule_from_csv(read_file(run.pipeline.file), run.pipeline.file);
  }
  if (!(schedule.shape == shape))
    throw UserError({.place = run.place_of("pipeline.file"),
                     .got = fmt::format("a schedule of {} ranks, {} chunks and {} microbatches", schedule.shape.ranks,
                                        schedule.shape.chunks, schedule.shape.microbatches),
                     .expected = fmt::format("{} ranks, {} chunks and {} microbatches, as the config says", shape.ranks,
                                             shape.chunks, shape.microbatches)});
  check(schedule, run.place_of("pipeline.schedule"));
  return schedule;
}

// One microbatch, forward only.
PipelineSchedule evaluation_schedule(const PipelineSchedule& train) {
  PipelineSchedule schedule{.name = "evaluation", .shape = train.shape, .placement = train.placement, .ranks = {}};
  schedule.shape.microbatches = 1;
  schedule.ranks.resize(static_cast<size_t>(train.shape.ranks));
  for (auto& actions : schedule.ranks)
    for (int chunk = 0; chunk < train.shape.chunks; ++chunk) actions.push_back({RegionKind::forward, chunk, 0});
  return schedule;
}

// A run that asks for activations on the host and has too few blocks to send any would only look like one.
void require_offloaded_activations(const RunConfig& run, const std::vector<Program>& programs) {
  for (const Program& program : programs)
    for (const Region& region : program.regions)
      for (const Op& op : region.ops)
        if (region.kind == RegionKind::forward && copies_to_host(program, op) && !once_per_step(op)) return;
  throw UserError({.place = run.place_of("offload.activations"),
                   .got = "\"block\", and no rank has a block whose activations are away long enough to leave",
                   .expected = "at least two blocks behind it on the same rank and chunk",
                   .hint = "use fewer pipeline stages or chunks, or offload.activations = \"none\""});
}

Offload offload_of(const RunConfig& run, DType weights) {
  if (run.offload.weights && weights != DType::bf16)
    throw UserError({.place = run.place_of("offload.weights"),
                     .got = fmt::format("weights are computed with in {}: no bits of them are the update's alone",
                                        name_of(weights)),
                     .expected = "train.precision = \"bf16\", or offload.weights = false"});
  return {.optimizer = run.offload.optimizer,
          .weights = run.offload.weights,
          .working_weights = run.offload.working_weights,
          .activations = run.offload.activations == OffloadedActivations::block,
          .to = run.offload.to == OffloadTarget::nvme ? MemorySpace::nvme : MemorySpace::host};
}

}  // namespace

Optimizer optimizer_of(const RunConfig& run) {
  const OptimizerDef* def = find_optimizer(run.optimizer.name);
  BUG_IF(!def, "unknown optimizer {}", run.optimizer.name);
  return {.def = def,
          .settings = run.optimizer,
          .clip = run.optimizer.clip,
          .rounds_weights = run.train.master_weights == DType::bf16,
          .norm_limit = run.train.spike.action == SpikeAction::skip};
}

int64_t RunPrograms::arena_bytes(int stage_rank, MemorySpace space) const {
  int64_t bytes = 0;
  auto add = [&](const std::vector<Program>& programs) {
    if (!programs.empty()) bytes = std::max(bytes, programs[static_cast<size_t>(stage_rank)].arena(space).all);
  };
  add(train), add(evaluate), add(measure);
  for (const Repeat& again : repeat) add(again.programs);
  return bytes;
}

int stage_rank_of(const Mesh& mesh, int rank) {
  auto axis = mesh.find(AxisRole::pipeline);
  return axis ? coordinate_of(mesh, rank)[static_cast<size_t>(*axis)] : 0;
}

LoweredRun lower_run(const RunConfig& config, const ModelSpec& spec, const Target& target, Checks checks) {
  RunShape shape = run_shape(config, spec);
  RunPrograms programs = build_programs(config, shape, target, {}, checks);
  return {std::move(shape), std::move(programs)};
}

bool has_validation(const RunConfig& run) {
  return run.train.eval_every > 0 && (!run.data.validation.empty() || run.data.validation_fraction > 0);
}

RunShape run_shape(const RunConfig& run, const ModelSpec& spec) {
  return run_shape(run, spec, mesh_of(run.mesh));
}

RunShape run_shape(const RunConfig& run, const ModelSpec& spec, Mesh mesh) {
  const MeshSection& m = run.mesh;
  RunShape shape{
      .spec = spec, .mesh = std::move(mesh), .parallel = {}, .pipeline = {}, .blocks_per_stage = {}, .dropout = {}};
  shape.parallel = {.sequence = m.sequence_parallel,
                    .context = m.context,
                    .ring_order = ring_order_of(run, spec),
                    .zero = static_cast<int>(m.zero),
                    .expert_capacity = m.expert_capacity,
                    .expert_dispatch = m.expert_dispatch};
  shape.pipeline = schedule_of(run, shape.mesh);
  if (shape.pipeline.placement == StagePlacement::both_ways) {
    shape.pipeline = folded(shape.pipeline, run.place_of("pipeline.schedule"));
    shape.mesh = shape.mesh.with_pipeline_copies();
  }
  shape.blocks_per_stage = stage_layers(run, spec, shape.pipeline.shape.stages());
  shape.dropout = resolve_dropout(run);
  return shape;
}

RunPrograms build_programs(const RunConfig& run, const RunShape& shape, const Target& target,
                           const decltype(LowerOptions::observe)& observe, Checks checks) {
  // A Graph is one microbatch over all data-parallel ranks.
  Use use{.batch = run.batch.microbatch * shape.mesh.ranks(AxisRole::data),
          .seq = run.batch.seq,
          .z_loss = run.optimizer.z_loss,
          .documents = run.data.mask_documents,
          .dropout = shape.dropout,
          .dtype = precision_of(run, target),
          .expert_gradients = gradients_of_experts(run, target),
          .parallel = shape.parallel};
  Graph graph = build_model(shape.spec, use, shape.mesh);
  require_numbers_of_rows(run, graph);
  // Evaluation, which has less to do behind the last block, has the stages of training.
  std::vector<int> blocks = shape.blocks_per_stage;
  if (blocks.empty()) blocks = balanced_blocks(graph, shape.pipeline.shape.stages());
  Quantization quantization{.recipe = find_fp8_recipe(run.train.precision),
                            .format = find_block_format(run.train.precision),
                            .skip = run.train.fp8_skip};
  LowerOptions options{.train = optimizer_of(run),
                       .check_gemms = checked_gemms(run, target),
                       .quantization = quantization,
                       .loss_scaling = loss_scaling_of(run),
                       .pipeline = shape.pipeline,
                       .blocks_per_stage = blocks,
                       .checks = checks,
                       .observe = observe};
  options.plan = {.recompute = run.train.recompute,
                  .deferred = run.pipeline.deferred_gradients,
                  .zero = shape.parallel.zero,
                  .microbatches = shape.pipeline.shape.microbatches,
                  .overlap = run.mesh.overlap,
                  .bucket = {static_cast<int64_t>(run.mesh.bucket_mb * (1 << 20))},
                  .offload = offload_of(run, use.dtype),
                  .exact_parts = exact_parts_of(run, shape.mesh)};
  const int64_t rounds = expert_rounds(graph).all;
  options.measures.noise_scale = run.log.grad_noise_scale;
  if (run.log.grad_noise_scale) require_like_gradients(run, shape);
  RunPrograms programs{
      .train = lower_all(std::move(graph), target, options), .evaluate = {}, .repeat = {}, .measure = {}};
  if (run.log.grad_noise_scale) programs.noise_parts = parts_of_microbatches(run, programs.train);
  // Whoever looks at the passes is shown why instead.
  if (options.plan.offload.activations && !observe) require_offloaded_activations(run, programs.train);
  if (quantization.recipe && !observe) require_fp8(run, *quantization.recipe, programs.train);
  for (int64_t some : repeated_in(rounds)) {
    LowerOptions again = options;
    // Values inside a round are recomputed in backward and used up there, not kept for each round.
    again.plan.recompute = RecomputeMode::full;
    again.pipeline = with_whole_backwards(shape.pipeline);
    again.beside = &programs.train;
    again.observe = {};
    use.parallel.expert_rounds = some;
    Graph repeated = build_model(shape.spec, use, shape.mesh);
    int64_t done = expert_rounds(repeated).done;
    programs.repeat.push_back({done, lower_all(std::move(repeated), target, again)});
  }
  if (run.log.tensor_stats_every > 0) {
    LowerOptions measuring = options;
    measuring.measures.statistics = true;
    measuring.measures.format = choice_of(run.log.tensor_stats_format).dtype;
    measuring.beside = &programs.train;
    measuring.observe = {};
    use.parallel.expert_rounds = 1;
    programs.measure = lower_all(build_model(shape.spec, use, shape.mesh), target, measuring);
  }
  if (!has_validation(run)) return programs;
  use.parallel.expert_rounds = rounds;  // it loses nothing, and repeats nothing
  use.z_loss = 0;                       // a regulariser of training, not part of what is measured
  use.dropout = {};
  use.mtp = false;
  LowerOptions forward{
      .plan = {.overlap = run.mesh.overlap, .offload = {.working_weights = options.plan.offload.working_weights}},
      .quantization = quantization,
      .beside = &programs.train,
      .pipeline = evaluation_schedule(shape.pipeline),
      .blocks_per_stage = blocks,
      .checks = checks};
  programs.evaluate = lower_all(build_model(shape.spec, use, shape.mesh), target, forward);
  return programs;
}

}  // namespace sextant
