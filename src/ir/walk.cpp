#include "ir/walk.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "ir/lane.h"
#include "ir/op_def.h"

namespace sextant {

namespace {

// Up to the next wait, and through the waits that stand first.
std::span<const WalkStep> next_turn(std::span<const WalkStep> rest) {
  auto waits = [](const WalkStep& step) { return step.kind == WalkStep::Kind::wait; };
  auto end = std::ranges::find_if(std::ranges::find_if_not(rest, waits), rest.end(), waits);
  return rest.first(static_cast<size_t>(end - rest.begin()));
}

std::vector<WalkStep> take_turns(std::span<const WalkStep> one, std::span<const WalkStep> other) {
  std::vector<WalkStep> steps;
  while (!one.empty() || !other.empty()) {
    std::span<const WalkStep> turn = next_turn(one);
    steps.insert(steps.end(), turn.begin(), turn.end());
    one = one.subspan(turn.size());
    std::swap(one, other);
  }
  return steps;
}

}  // namespace

Walk::Walk(const Program& program) : program_(program) {
  for (const Region& region : program.regions) {
    auto first = static_cast<int32_t>(ops_.size());
    for (const Op& op : region.ops) ops_.push_back(&op);
    RegionSteps& of = regions_.emplace_back(RegionSteps{.first_op = first,
                                                        .first_microbatch = first_microbatch(program, region),
                                                        .last_microbatch = last_microbatch(program, region),
                                                        .steps = {}});
    for (bool is_first : {false, true})
      for (bool is_last : {false, true}) of.steps[{is_first, is_last}] = steps_of(region, first, {is_first, is_last});
  }
  for_each_unit(program.schedule, [&](std::span<const Action> unit) {
    if (unit.size() < 2) return;
    UnitKey key = key_of(unit);
    if (!units_.contains(key))
      units_.emplace(key, join(key, is_pair(unit) ? Order::parts_take_turns : Order::parts_in_order));
  });
}

Walk::UnitKey Walk::key_of(std::span<const Action> unit) const {
  BUG_IF(unit.size() > kMostParts, "a unit of {} actions", unit.size());
  UnitKey key;
  for (size_t i = 0; i < unit.size(); ++i)
    if (std::optional<size_t> region = region_of(unit[i]))
      key[i] = {static_cast<int32_t>(*region), regions_[*region].turn_of(unit[i].microbatch)};
  return key;
}

std::vector<WalkStep> Walk::join(const UnitKey& key, Order order) const {
  // Steps that wait for sent messages come before every part: a unit starts only when everything that it needs is
  // there.
  std::vector<WalkStep> steps;
  std::vector<WalkStep> first, rest;  // of the first action, and of those behind it
  for (size_t part = 0; part < key.size(); ++part) {
    if (key[part].region < 0) continue;
    const RegionSteps& of = regions_[static_cast<size_t>(key[part].region)];
    for (WalkStep step : of.steps.at(key[part].turn)) {
      step.part = static_cast<int32_t>(part);
      bool before = step.kind == WalkStep::Kind::settle || step.kind == WalkStep::Kind::reclaim;
      (before ? steps : part == 0 ? first : rest).push_back(step);
    }
  }
  if (order == Order::parts_take_turns) {
    first = take_turns(first, rest);
    rest.clear();
  }
  steps.insert(steps.end(), first.begin(), first.end());
  steps.insert(steps.end(), rest.begin(), rest.end());
  return steps;
}

std::vector<std::vector<WalkStep>> Walk::pairs() const {
  std::set<UnitKey> kinds;
  for_each_unit(program_.schedule, [&](std::span<const Action> unit) {
    if (!is_pair(unit)) return;
    UnitKey key = key_of(unit);
    for (PartKey& part : key) part.turn = {part.region >= 0, part.region >= 0};
    kinds.insert(key);
  });
  std::vector<std::vector<WalkStep>> all;
  for (const UnitKey& key : kinds) all.push_back(join(key, Order::parts_take_turns));
  return all;
}

std::vector<WalkStep> Walk::steps_of(const Region& region, int32_t first_op, Turn turn) const {
  using enum WalkStep::Kind;
  std::vector<WalkStep> steps;
  if (region.kind == RegionKind::update) steps.push_back({settle, -1});
  for (size_t i = 0; i < region.ops.size(); ++i)
    if (region.ops[i].def->holds_inputs) steps.push_back({reclaim, first_op + static_cast<int32_t>(i)});
  for (size_t i = 0; i < region.ops.size(); ++i) {
    const Op& op = region.ops[i];
    for (int32_t other : op.waits) steps.push_back({wait, other});
    if (op.runs_for == RunsFor::first_microbatch && !turn.first) continue;
    if (op.runs_for == RunsFor::last_microbatch && !turn.last) continue;
    steps.push_back({start, first_op + static_cast<int32_t>(i)});
  }
  return steps;
}

std::optional<size_t> Walk::region_of(const Action& action) const {
  for (size_t r = 0; r < program_.regions.size(); ++r)
    if (program_.regions[r].kind == action.region && program_.regions[r].chunk == action.chunk) return r;
  return std::nullopt;
}

std::span<const WalkStep> Walk::steps(std::span<const Action> unit) const {
  if (unit.size() == 1) return steps(unit.front());
  auto known = units_.find(key_of(unit));
  BUG_IF(known == units_.end(), "a unit of {} actions that the schedule does not have", unit.size());
  return known->second;
}

std::span<const WalkStep> Walk::steps(const Action& action) const {
  std::optional<size_t> region = region_of(action);
  if (!region) return {};
  const RegionSteps& of = regions_[*region];
  return of.steps.at(of.turn_of(action.microbatch));
}

}  // namespace sextant
