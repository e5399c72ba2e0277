#include "ir/walk.h"

#include "ir/lane.h"
#include "ir/op_def.h"

namespace sextant {

Walk::Walk(const Program& program) : program_(program) {
  for (const Region& region : program.regions) {
    auto first = static_cast<int32_t>(ops_.size());
    for (const Op& op : region.ops) ops_.push_back(&op);
    regions_.push_back({.first_op = first,
                        .last_microbatch = last_microbatch(program, region),
                        .every = steps_of(region, first, RunsFor::every_microbatch),
                        .last = steps_of(region, first, RunsFor::last_microbatch)});
  }
}

std::vector<WalkStep> Walk::steps_of(const Region& region, int32_t first_op, RunsFor which) const {
  using enum WalkStep::Kind;
  std::vector<WalkStep> steps;
  if (region.kind == RegionKind::update) steps.push_back({settle, -1});
  for (size_t i = 0; i < region.ops.size(); ++i)
    if (region.ops[i].def->holds_inputs) steps.push_back({reclaim, first_op + static_cast<int32_t>(i)});
  for (size_t i = 0; i < region.ops.size(); ++i) {
    const Op& op = region.ops[i];
    for (int32_t other : op.waits) steps.push_back({wait, other});
    if (last_microbatch_only(op) && which == RunsFor::every_microbatch) continue;
    steps.push_back({start, first_op + static_cast<int32_t>(i)});
  }
  return steps;
}

std::optional<size_t> Walk::region_of(const Action& action) const {
  for (size_t r = 0; r < program_.regions.size(); ++r)
    if (program_.regions[r].kind == action.region && program_.regions[r].chunk == action.chunk) return r;
  return std::nullopt;
}

std::span<const WalkStep> Walk::steps(const Action& action) const {
  std::optional<size_t> region = region_of(action);
  if (!region) return {};
  const RegionSteps& of = regions_[*region];
  return action.microbatch == of.last_microbatch ? of.last : of.every;
}

}  // namespace sextant
