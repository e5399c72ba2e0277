#include "passes/space_copies.h"

#include <utility>

#include "ops/ops.h"

namespace sextant {

ValueId SpaceCopies::twin(ValueId id, MemorySpace space) {
  const Value& of = program_[id];
  Value twin{.id = static_cast<ValueId>(program_.values.size()),
             .path = of.path + "." + std::string(name_of(space)),
             .dtype = of.dtype,
             .shape = of.shape,
             .layout = of.layout,
             .space = space,
             .local = of.local};
  program_.values.push_back(std::move(twin));
  return program_.values.back().id;
}

Op SpaceCopies::make(ValueId from, ValueId to, Phase phase) const {
  Op op{.def = &ops::space_copy, .inputs = {from}, .outputs = {to}, .phase = phase};
  op.path = program_[from].path + ".to_" + std::string(name_of(program_[to].space));
  if (lanes_ == Lanes::on) op.lane = Lane::comm;
  return op;
}

void SpaceCopies::before(OpPosition at, Op copy) {
  copy.stage = op_at(at).stage, copy.block = op_at(at).block;
  added_[{at.region, at.op}].before.push_back(std::move(copy));
}

void SpaceCopies::behind(OpPosition at, Op copy) {
  copy.stage = op_at(at).stage, copy.block = op_at(at).block;
  added_[{at.region, at.op}].behind.push_back(std::move(copy));
}

void SpaceCopies::once_behind(OpPosition at, Op copy) {
  copy.runs_for = RunsFor::last_microbatch;
  behind(at, std::move(copy));
}

void SpaceCopies::insert() {
  for (size_t r = 0; r < program_.regions.size(); ++r) {
    std::vector<Op>& old = program_.regions[r].ops;
    std::vector<Op> ops;
    for (size_t i = 0; i < old.size(); ++i) {
      auto added = added_.find({static_cast<int>(r), static_cast<int>(i)});
      if (added != added_.end())
        for (Op& op : added->second.before) ops.push_back(std::move(op));
      ops.push_back(std::move(old[i]));
      if (added != added_.end())
        for (Op& op : added->second.behind) ops.push_back(std::move(op));
    }
    old = std::move(ops);
  }
  added_.clear();
}

}  // namespace sextant
