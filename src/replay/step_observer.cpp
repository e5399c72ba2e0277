#include "replay/step_observer.h"

#include <map>

#include "ir/alias.h"

namespace sextant {

StepObserver::StepObserver(const Program& program, int rank, std::atomic<int64_t>& order)
    : program_(program), rank_(rank), at_(coordinate_of(program.mesh, rank)), order_(order) {
  find_shared_sums();
}

void StepObserver::find_shared_sums() {
  std::map<ValueId, ValueId> begin_of;  // of a sum as an op left it: what the first op found
  std::map<ValueId, std::vector<const Op*>> adding;
  for (const Region& region : program_.regions)
    for (const Op& op : region.ops) {
      if (!accumulates(op)) continue;
      auto before = begin_of.find(op.inputs.back());
      ValueId begin = before == begin_of.end() ? op.inputs.back() : before->second;
      begin_of[op.outputs[0]] = begin;
      adding[begin].push_back(&op);
    }
  for (const auto& [sum, ops] : adding)
    if (ops.size() > 1) sharing_.insert(ops.begin(), ops.end());
}

// Along axes where a value is sharded or partial every rank has its part; along the others all have the same. Pipeline
// ranks have different ops.
bool StepObserver::is_counted(const Value& value) const {
  for (int axis = 0; axis < program_.mesh.axis_count(); ++axis) {
    AxisState state = value.layout.at(axis);
    bool same_elsewhere =
        state.kind != StateKind::sharded && state != kPartial && program_.mesh.role(axis) != AxisRole::pipeline;
    if (same_elsewhere && at_[static_cast<size_t>(axis)] != 0) return false;
  }
  return true;
}

bool StepObserver::is_additive(const Value& value) const {
  for (int axis = 0; axis < program_.mesh.axis_count(); ++axis)
    if (value.layout.at(axis) == kPartialMax) return false;
  return true;
}

bool StepObserver::is_stage_part(const Value& value) const {
  for (int axis = 0; axis < program_.mesh.axis_count(); ++axis)
    if (program_.mesh.role(axis) == AxisRole::pipeline && value.layout.at(axis) == kPartial) return true;
  return false;
}

// Ops that add onto a gradient give it a name of its own; the buffer tells.
bool StepObserver::outlasts_microbatch(const Value& value) const {
  if (is_persistent(value.kind) || value.buffer < 0) return true;
  BufferClass kind = program_.buffers[static_cast<size_t>(value.buffer)].kind;
  return kind == BufferClass::gradients || kind == BufferClass::weights || kind == BufferClass::optimizer;
}

void StepObserver::after(const OpRun& run) {
  int64_t order = order_.fetch_add(1);
  for (size_t i = 0; i < run.outputs.size(); ++i) {
    const Value& value = program_[run.op.outputs[i]];
    bool of_step = run.action.region == RegionKind::update || outlasts_microbatch(value);
    int64_t first = of_step ? 0 : run.action.microbatch * value.shape.count();
    seen_.push_back({.order = order,
                     .rank = rank_,
                     .action = run.action,
                     .op = run.op.path,
                     .kind = std::string(run.op.def->name),
                     .output = static_cast<int>(i),
                     .value = value.path,
                     .phase = run.op.phase,
                     .layer = run.op.block,
                     .dtype = value.dtype,
                     .shape = value.shape,
                     .summed = of_step,
                     .shares_sum = sharing_.contains(&run.op) && i == 0,
                     .counted = is_counted(value),
                     .additive = is_additive(value),
                     .stage_rank = program_.stage_rank,
                     .stage_part = is_stage_part(value),
                     .summary = summarize(run.outputs[i], value.shape, first)});
  }
}

}  // namespace sextant
