#include "passes/offload.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "ir/alias.h"
#include "ir/lane.h"
#include "passes/gradient_history.h"
#include "passes/offload_activations.h"
#include "passes/space_copies.h"
#include "passes/stream_weights.h"

namespace sextant {

namespace {

// The update of what is kept on the host.
class UpdateOnHost {
 public:
  UpdateOnHost(Program& program, const OffloadPlan& plan)
      : program_(program), plan_(plan), history_(program), copies_(program, plan.lanes) {
    for (size_t r = 0; r < program.regions.size(); ++r)
      if (program.regions[r].kind == RegionKind::update) update_ = static_cast<int>(r);
  }

  void run() {
    if (update_ < 0) return;
    for (size_t i = 0; i < ops().size(); ++i) visit(ops()[i], static_cast<int>(i));
    copies_.insert();
    std::erase_if(ops(), [&](const Op& op) { return !op.outputs.empty() && views_.contains(op.outputs[0]); });
    // The step ends when all that it sends has come back: the last copy is waited for.
    if (!ops().empty()) ops().back().lane = Lane::compute;
  }

 private:
  std::vector<Op>& ops() { return program_.regions[static_cast<size_t>(update_)].ops; }
  bool is_on_host(ValueId id) const { return program_[id].space == MemorySpace::host; }
  bool is_offloaded(ValueId id) const { return program_[id].space != MemorySpace::device; }
  bool has_file() const { return plan_.offload.to == MemorySpace::nvme; }

  void visit(Op& op, int at) {
    for (ValueId& id : op.inputs)
      if (auto seen = views_.find(id); seen != views_.end()) id = seen->second;
    if (std::ranges::none_of(op.inputs, [&](ValueId id) { return is_offloaded(id); })) return;
    const std::vector<Alias> aliases = aliases_of(op);
    if (std::ranges::any_of(aliases, [](const Alias& alias) { return alias.rule == Alias::Rule::view; }))
      views_.emplace(op.outputs[0], op.inputs[0]);  // nothing is done there: whoever reads it reads what it shows
    else if (!op.def->message &&
             static_cast<size_t>(std::ranges::count(aliases, Alias::Rule::must, &Alias::rule)) == op.outputs.size())
      move_to_host(op, at, aliases);
    else
      leave_on_device(op, at);
  }

  // An op that changes its operands in place: the optimizer's step.
  void move_to_host(Op& op, int at, const std::vector<Alias>& aliases) {
    const std::vector<ValueId> before = op.inputs;
    for (ValueId& id : op.inputs)
      if (!is_on_host(id)) id = on_host(id, op, at);
    steps_.push_back(at);
    for (size_t o = 0; o < op.outputs.size(); ++o) {
      auto changed = std::ranges::find(aliases, static_cast<int>(o), &Alias::output);
      BUG_IF(changed == aliases.end(), "{} ({}) makes a value of its own, and would run on the host", op.path,
             op.def->name);
      ValueId kept = before[static_cast<size_t>(changed->input)];
      if (is_on_host(kept)) {
        program_.values[static_cast<size_t>(op.outputs[o])].space = MemorySpace::host;
        continue;
      }
      ValueId next = op.outputs[o];  // on the device, or in the file
      program_.values[static_cast<size_t>(next)].space = program_[kept].space;
      op.outputs[o] = copies_.twin(next, MemorySpace::host);
      copies_.behind({update_, at}, copy_into(kept, op.outputs[o], next, op));
    }
  }

  // A message, or what measures the update: its operands come up, and what it writes into the host's goes down. The
  // device has room for a weight at a time, so that each is waited for.
  void leave_on_device(Op& op, int at) {
    for (ValueId id : op.inputs)
      BUG_IF(program_[id].space == MemorySpace::nvme, "{} ({}) runs on the device, and {} is in the file", op.path,
             op.def->name, program_[id].path);
    if (writes_into(op) && is_on_host(op.inputs.back())) {
      ValueId kept = op.inputs.back(), next = op.outputs[0];
      program_.values[static_cast<size_t>(next)].space = MemorySpace::host;
      op.inputs.pop_back();
      op.attrs.set("into", int64_t{0});
      op.outputs[0] = copies_.twin(next, MemorySpace::device);
      Op down = copy_into(kept, op.outputs[0], next, op);
      down.lane = Lane::compute;
      copies_.behind({update_, at}, std::move(down));
    }
    for (ValueId& id : op.inputs) {
      if (!is_on_host(id)) continue;
      ValueId up = copies_.twin(id, MemorySpace::device);
      Op copy = copies_.make(id, up, Phase::update);
      copy.parameter = op.parameter;
      copy.lane = Lane::compute;
      copies_.before({update_, at}, std::move(copy));
      id = up;
    }
  }

  Op copy_into(ValueId kept, ValueId from, ValueId to, const Op& reader) const {
    Op copy = copies_.make(from, to, reader.phase);
    copy.inputs.push_back(kept);
    copy.attrs.set("into", int64_t{1});
    copy.parameter = reader.parameter;
    return copy;
  }

  // The value on the host, copied there once and as early as it is known.
  ValueId on_host(ValueId id, const Op& reader, int at) {
    auto known = on_host_.find(id);
    if (known != on_host_.end()) return known->second;
    ValueId host = copies_.twin(id, MemorySpace::host);
    on_host_.emplace(id, host);
    Op copy = copies_.make(id, host, Phase::update);
    copy.parameter = reader.parameter;
    if (program_[id].shape.rank() == 0) copy.lane = Lane::compute;  // a number of the step: nothing to hide
    OpPosition made = history_.made(id);
    const int ahead = one_step_ahead(at);
    if (has_file() && program_[id].shape.rank() > 0 && (made.region != update_ || made.op < ahead)) {
      copies_.before({update_, ahead}, std::move(copy));
    } else if (made.region == update_) {
      copies_.behind(made, std::move(copy));
    } else if (OpPosition place = finished_in_backward(id, made); place.region >= 0) {
      if (plan_.offload.working_weights) {
        copies_.before({update_, some_steps_ahead(at)}, std::move(copy));
        return host;
      }
      copy.phase = Phase::weight_gradient;
      copies_.once_behind(place, std::move(copy));
    } else if (OpPosition use = first_use_in_forward(id); use.region >= 0) {
      copy.phase = Phase::forward;
      copies_.once_behind(use, std::move(copy));
    } else {
      copies_.before({update_, at}, std::move(copy));
    }
    return host;
  }

  // Where a gradient leaves for the host, which has the weights too and no room for all gradients beside them: so early
  // that its way is hidden behind the steps of other weights, of which some are small.
  int some_steps_ahead(int at) const {
    constexpr size_t kStepsAhead = 3;
    return steps_.empty() ? at : steps_[steps_.size() - std::min(kStepsAhead, steps_.size())];
  }

  // Where what a step reads sets out when states are read from a file: while the step before runs. The host has room
  // for the operands of a few steps, and none for all gradients.
  int one_step_ahead(int at) const { return steps_.empty() ? at : steps_.back(); }

  OpPosition finished_in_backward(ValueId id, OpPosition made) const {
    if (made.region < 0) return {};
    const Op& maker = program_.regions[static_cast<size_t>(made.region)].ops[static_cast<size_t>(made.op)];
    return last_microbatch_only(maker) ? made : history_.finished(id);
  }

  OpPosition first_use_in_forward(ValueId id) const {
    if (program_[id].kind != ValueKind::parameter) return {};
    for (size_t r = 0; r < program_.regions.size(); ++r) {
      const Region& region = program_.regions[r];
      for (size_t i = 0; i < region.ops.size() && region.kind == RegionKind::forward; ++i)
        if (std::ranges::count(region.ops[i].inputs, id) > 0) return {static_cast<int>(r), static_cast<int>(i)};
    }
    return {};
  }

  Program& program_;
  const OffloadPlan& plan_;
  GradientHistory history_;
  SpaceCopies copies_;
  int update_ = -1;
  std::vector<int> steps_;              // ops that run on the host
  std::map<ValueId, ValueId> views_;    // what values of the host show that are nothing else
  std::map<ValueId, ValueId> on_host_;  // by value of the device
};

}  // namespace

void offload(Program& program, const OffloadPlan& plan) {
  if (plan.offload.activations) offload_activations(program, plan.lanes);
  if (plan.offload.working_weights) stream_weights(program, plan.lanes);
  if (plan.offload.optimizer) UpdateOnHost(program, plan).run();
}

}  // namespace sextant
