#include "passes/offload.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "ir/alias.h"
#include "ir/lane.h"
#include "passes/gradient_history.h"
#include "passes/offload_activations.h"
#include "passes/space_copies.h"

namespace sextant {

namespace {

// The update of what is kept on the host.
class UpdateOnHost {
 public:
  UpdateOnHost(Program& program, Lanes lanes) : program_(program), history_(program), copies_(program, lanes) {
    for (size_t r = 0; r < program.regions.size(); ++r)
      if (program.regions[r].kind == RegionKind::update) update_ = static_cast<int>(r);
  }

  void run() {
    if (update_ < 0) return;
    size_t count = program_.regions[static_cast<size_t>(update_)].ops.size();
    for (size_t i = 0; i < count; ++i) {
      Op& op = program_.regions[static_cast<size_t>(update_)].ops[i];
      if (std::ranges::any_of(op.inputs, [&](ValueId id) { return program_[id].space == MemorySpace::host; }))
        move_to_host(op, static_cast<int>(i));
    }
    copies_.insert();
    // The step ends when all that it sends has come back: the last copy is waited for.
    std::vector<Op>& ops = program_.regions[static_cast<size_t>(update_)].ops;
    if (!ops.empty()) ops.back().lane = Lane::compute;
  }

 private:
  void move_to_host(Op& op, int at) {
    const std::vector<Alias> aliases = aliases_of(op);
    const std::vector<ValueId> before = op.inputs;
    for (ValueId& id : op.inputs)
      if (program_[id].space == MemorySpace::device) id = on_host(id, op, at);
    for (size_t o = 0; o < op.outputs.size(); ++o) {
      auto changed = std::ranges::find_if(aliases, [&](const Alias& alias) {
        return alias.rule == Alias::Rule::must && alias.output == static_cast<int>(o);
      });
      BUG_IF(changed == aliases.end(), "{} ({}) makes a value of its own, and would run on the host", op.path,
             op.def->name);
      ValueId kept = before[static_cast<size_t>(changed->input)];
      if (program_[kept].space == MemorySpace::host) {
        program_.values[static_cast<size_t>(op.outputs[o])].space = MemorySpace::host;
        continue;
      }
      ValueId on_device = op.outputs[o];
      op.outputs[o] = copies_.twin(on_device, MemorySpace::host);
      Op back = copies_.make(op.outputs[o], on_device, op.phase);
      back.inputs.push_back(kept);
      back.attrs.set("into", int64_t{1});
      back.parameter = op.parameter;
      copies_.behind({update_, at}, std::move(back));
    }
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
    if (made.region == update_) {
      copies_.behind(made, std::move(copy));
    } else if (OpPosition place = finished_in_backward(id, made); place.region >= 0) {
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
  GradientHistory history_;
  SpaceCopies copies_;
  int update_ = -1;
  std::map<ValueId, ValueId> on_host_;  // by value of the device
};

}  // namespace

void offload(Program& program, const OffloadPlan& plan) {
  if (plan.offload.activations) offload_activations(program, plan.lanes);
  if (plan.offload.optimizer) UpdateOnHost(program, plan.lanes).run();
}

}  // namespace sextant
