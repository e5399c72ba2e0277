#include "plan/run_plan.h"

#include "run/local_slots.h"

#include <algorithm>

#include "base/error.h"
#include "ir/lane.h"
#include "models/model.h"
#include "ops/row_queues.h"
#include "plan/foreign_memory.h"
#include "plan/step_memory.h"
#include "plan/traffic.h"
#include "schedule/folded.h"

namespace sextant {

namespace {

// From a failure to the first step that counts: noticed, rescheduled, libraries started, checkpoint read.
constexpr double kRestartSeconds = 600;
// Seconds that a checkpoint stops the run where storage is not known: a copy is taken, then saved in the background.
constexpr double kCheckpointPauseSeconds = 5;

std::string part_of(const std::string& path) {
  std::string first = path.substr(0, path.find('.'));
  return first == "layers" ? "each layer" : first == "mtp" ? "each MTP module" : first;
}

std::vector<ParameterCount> parameters_by_part(const Graph& graph, const ModelSpec& spec) {
  std::vector<ParameterCount> parts;
  for (const Value& value : graph.values) {
    if (value.kind != ValueKind::parameter || !value.is_trained()) continue;
    std::string name = part_of(value.path);
    auto found = std::find_if(parts.begin(), parts.end(), [&](const ParameterCount& p) { return p.part == name; });
    int64_t times = name == "each layer" ? spec.layers : name == "each MTP module" ? spec.mtp_depths : 1;
    if (found == parts.end()) found = parts.insert(parts.end(), {name, 0, times});
    found->each += value.shape.count();
  }
  for (ParameterCount& part : parts) part.each /= part.times;
  return parts;
}

int first_rank_of_stage(const Mesh& mesh, int stage_rank) {
  Coordinate at(mesh.axes.size(), 0);
  if (auto axis = mesh.find(AxisRole::pipeline)) at[static_cast<size_t>(*axis)] = stage_rank;
  return rank_of(mesh, at);
}

// Weights and optimizer state: what a copy for a checkpoint takes.
int64_t saved_bytes(const Program& program) {
  int64_t bytes = 0;
  for (const Value& value : program.values)
    if (value.kind == ValueKind::parameter || value.kind == ValueKind::low_bits || value.kind == ValueKind::state)
      bytes += value.local_bytes().n;
  return bytes;
}

// The same in every layer: all have the same experts.
std::optional<ExpertRowsPlan> expert_rows_of(const RunPrograms& programs) {
  for (const Program& program : programs.train)
    for (const Region& region : program.regions)
      for (const Op& op : region.ops)
        if (std::optional<RowQueues> queues = row_queues_of(op))
          return {{.dispatch = queues->dispatch,
                   .capacity = queues->capacity,
                   .most = queues->most,
                   .copies = queues->copies,
                   .rounds = queues->rounds}};
  return std::nullopt;
}

// Weights of a rank whose optimizer states were asked for in fewer bits than they have.
int64_t states_kept_wide(const Program& program) {
  int64_t count = 0;
  for (const Region& region : program.regions)
    if (region.kind == RegionKind::update)
      count += std::ranges::count_if(region.ops, [](const Op& op) { return op.attrs.has("kept_wide"); });
  return count;
}

HostParts host_parts(const Program& program, int64_t arena) {
  HostParts parts;
  std::vector<bool> activation(program.buffers.size());
  for (const Region& region : program.regions)
    for (const Op& op : region.ops)
      if (copies_to_host(program, op) && region.kind == RegionKind::forward && !once_per_step(op))
        activation[static_cast<size_t>(program[op.outputs[0]].buffer)] = true;
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const Buffer& buffer = program.buffers[i];
    if (buffer.space != MemorySpace::host) continue;
    if (buffer.kind == BufferClass::weights) parts.weights += buffer.total_bytes();
    if (buffer.kind == BufferClass::optimizer) parts.optimizer += buffer.total_bytes();
    if (activation[i]) parts.activations += buffer.total_bytes();
  }
  parts.passing = arena - parts.weights - parts.optimizer - parts.activations;
  return parts;
}

void add_memory(RunPlan& plan, const PlanRequest& request) {
  const RunPrograms& programs = request.lowered.programs;
  for (size_t i = 0; i < programs.train.size(); ++i) {
    const Program& program = programs.train[i];
    int64_t arena = programs.arena_bytes(static_cast<int>(i));
    const OptimizerSection& optimizer = request.run.optimizer;
    plan.optimizer = optimizer.name + (optimizer.state.value_or(StateType::f32) == StateType::f32
                                           ? ""
                                           : fmt::format(", {}", word_of(*optimizer.state)));
    MemoryMoment peak = peak_moment(program, arena);
    if (request.machine) peak.parts.overhead = static_cast<int64_t>(request.machine->context_bytes);
    if (plan.memory_basis == MemoryBasis::estimate)
      peak.parts = parts_of(foreign_memory(program, request.run, *request.profile, *request.machine));
    MemoryMoment fullest = fullest_moment(program);
    int64_t host = programs.arena_bytes(static_cast<int>(i), MemorySpace::host);
    plan.classes.push_back({static_cast<int>(i), peak.parts, arena, fullest.path, fullest.region,
                            host_parts(program, host), programs.arena_bytes(static_cast<int>(i), MemorySpace::nvme)});
    plan.host_bytes = std::max(plan.host_bytes, host);
    plan.nvme_bytes = std::max(plan.nvme_bytes, plan.classes.back().nvme_bytes);
    if (peak.parts.total() <= plan.peak_bytes) continue;
    plan.peak_bytes = peak.parts.total();
    auto extra = [&](const std::vector<Program>& other) {
      return other.empty() ? 0 : std::max<int64_t>(0, other[i].arena_bytes - program.arena_bytes);
    };
    plan.evaluation_extra = extra(programs.evaluate);
    for (const RunPrograms::Repeat& repeat : programs.repeat)
      plan.repeat_extra = std::max(plan.repeat_extra, extra(repeat.programs));
    const CheckpointSection& checkpoint = request.run.checkpoint;
    if (checkpoint.background && checkpoint.every > 0) plan.snapshot = saved_bytes(program);
    if (checkpoint.local_every > 0) plan.local_copies = kLocalSlots * saved_bytes(program);
    if (checkpoint.local_every > 0 && checkpoint.replication && program.mesh.world_size() > 1)
      plan.local_copies_held = plan.local_copies;
    plan.sent = bytes_to_send(program, first_rank_of_stage(request.lowered.shape.mesh, static_cast<int>(i)));
    for (const Value& value : program.values) {
      if (value.kind == ValueKind::parameter && size_of(value.dtype) < size_of(plan.weights))
        plan.weights = value.dtype;
      plan.masters = plan.masters || value.kind == ValueKind::low_bits;
    }
    plan.states_kept_wide = states_kept_wide(program);
  }
}

StepTime step_time(const RunPlan& plan, const SimResult& result, const Machine& machine) {
  const RankTime& rank = result.ranks[static_cast<size_t>(result.slowest)];
  StepTime step{.seconds = result.seconds,
                .compute_s = rank.compute,
                .update_s = rank.update,
                .bubble_s = rank.bubble,
                .host_s = rank.host,
                .exposed_comm_s = rank.exposed};
  double tokens_per_s = static_cast<double>(plan.tokens_per_step) / static_cast<double>(plan.ranks) / step.seconds;
  double peak = peak_flops_per_s(machine, plan.weights);
  step.tokens_per_s_per_device = tokens_per_s;
  step.tflops_per_device = tokens_per_s * plan.flops.model_causal / 1e12;
  if (peak > 0)
    step.mfu = tokens_per_s * plan.flops.model_causal / peak, step.hfu = tokens_per_s * plan.flops.executed / peak;
  return step;
}

// Bytes that a rank writes for a checkpoint: weights and optimizer state, and the weights once more where they are
// saved in another type than f32 too. (That copy takes no memory: it is made on the way to the file.)
double saved_bytes(const RunPlan& plan, const PlanRequest& request) {
  const MemoryParts& memory = plan.classes.front().memory;
  int64_t bytes = memory.weights + memory.optimizer + plan.classes.front().host.optimizer;
  DType dtype = request.run.checkpoint.dtype;
  if (dtype == DType::f32) return static_cast<double>(bytes);
  for (const Value& value : request.lowered.programs.train.front().values)
    if (value.kind == ValueKind::parameter) bytes += value.local.count() * size_of(dtype);
  return static_cast<double>(bytes);
}

Economics economics_for(const RunPlan& plan, const PlanRequest& request) {
  const Machine& machine = *request.machine;
  double budget = request.token_budget > 0
                      ? request.token_budget
                      : static_cast<double>(plan.tokens_per_step) * static_cast<double>(request.run.train.steps);
  double pause = kCheckpointPauseSeconds;
  if (machine.checkpoint_bytes_per_s > 0) pause = saved_bytes(plan, request) / machine.checkpoint_bytes_per_s;
  return economics_of({.step_seconds = plan.step->seconds,
                       .tokens_per_step = static_cast<double>(plan.tokens_per_step),
                       .token_budget = budget,
                       .devices = plan.ranks,
                       .devices_per_node = machine.devices_per_node,
                       .device_watts = machine.device.watts,
                       .price_per_device_hour = machine.price_per_hour,
                       .device_mtbf_hours = machine.mtbf_hours,
                       .checkpoint_seconds = pause,
                       .restart_seconds = kRestartSeconds,
                       .params = static_cast<double>(plan.active.all)});
}

}  // namespace

RunPlan make_plan(const PlanRequest& request, SimResult* result) {
  const RunShape& shape = request.lowered.shape;
  Graph graph = build_model(shape.spec, {.seq = 1}, single_rank_mesh());
  RunPlan plan{.architecture = shape.spec.architecture,
               .mesh = shape.mesh.text(),
               .parameters = parameter_count(graph),
               .active = active_parameters(graph),
               .by_part = parameters_by_part(graph, shape.spec),
               .ranks = shape.mesh.world_size(),
               .microbatches = unfolded_shape(shape.pipeline).microbatches,
               .tokens_per_step = request.run.batch.sequences * request.run.batch.seq};
  plan.flops = flops_per_token(request.lowered, request.run.batch);
  plan.expert_rows = expert_rows_of(request.lowered.programs);
  plan.memory_basis = memory_basis(request.machine, request.profile, request.run, shape.spec.experts.has_value());
  add_memory(plan, request);
  if (!request.machine) return plan;
  plan.machine = request.machine->name, plan.device = request.machine->device.name,
  plan.profile = request.profile->name;
  plan.device_bytes = request.machine->device.memory_bytes;
  plan.format = find_block_format(request.run.train.precision);
  if (plan.format)
    plan.format_peak = request.machine->peak(std::string(plan.format->units)),
    plan.bf16_peak = request.machine->peak("bf16");
  if (plan.memory_basis == MemoryBasis::estimate) {
    plan.kept_free = request.profile->headroom_bytes;
    if (request.intervals && !request.intervals->memory().empty())
      plan.memory_interval = request.intervals->memory().interval(plan.device, plan.profile, kIntervalShare);
  }
  const Machine& machine = *request.machine;
  if (plan.host_bytes > 0 && machine.host.memory_bytes > 0) plan.host_room = machine.host_bytes_of(plan.ranks);
  if (plan.nvme_bytes > 0 && machine.host.nvme_bytes > 0) plan.nvme_room = machine.nvme_bytes_of(plan.ranks);
  if (!plan.fits()) return plan;
  if (shape.mesh.ranks(ExpertRole::expert) > 1) plan.imbalance = request.imbalance;
  SimResult simulated = simulate_run(
      request.lowered, {*request.machine, request.machine->efficiency(), *request.profile, request.imbalance.ratio},
      request.simulation);
  plan.step = step_time(plan, simulated, *request.machine);
  // Published runs tell nothing of a CPU.
  if (request.intervals && !request.intervals->empty() && request.machine->device.kind == DeviceKind::accelerator)
    plan.step->interval = request.intervals->interval({.device = plan.device,
                                                       .software = plan.profile,
                                                       .models = models_word(shape.spec.experts.has_value()),
                                                       .size = size_class(static_cast<double>(plan.parameters)),
                                                       .dominated = dominated_by(simulated)});
  plan.economics = economics_for(plan, request);
  if (result) *result = std::move(simulated);
  return plan;
}

}  // namespace sextant
