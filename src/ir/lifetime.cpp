#include "ir/lifetime.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "ir/lane.h"
#include "ir/op_def.h"
#include "ir/walk.h"

namespace sextant {

namespace {

// The region an action runs; -1 where the Program has none (a stage without weight gradients to defer).
int region_of(const Program& program, const Action& action) {
  for (size_t i = 0; i < program.regions.size(); ++i)
    if (program.regions[i].kind == action.region && program.regions[i].chunk == action.chunk)
      return static_cast<int>(i);
  return -1;
}

void insert(std::vector<int>& regions, int region) {
  auto at = std::lower_bound(regions.begin(), regions.end(), region);
  if (at == regions.end() || *at != region) regions.insert(at, region);
}

bool is_under_way(const Program& program, const Region& region) {
  return region.kind == RegionKind::forward && region_of(program, {RegionKind::backward, region.chunk}) >= 0;
}

}  // namespace

std::vector<std::vector<int>> regions_touching(const Program& program) {
  std::vector<std::vector<int>> touching(program.values.size());
  for (size_t i = 0; i < program.regions.size(); ++i) {
    const Region& region = program.regions[i];
    for (const Op& op : region.ops) {
      for (const auto* ids : {&op.inputs, &op.outputs})
        for (ValueId id : *ids) insert(touching[static_cast<size_t>(id)], static_cast<int>(i));
      if (op.def->holds_inputs && is_under_way(program, region))
        for (ValueId id : op.inputs)
          insert(touching[static_cast<size_t>(id)], region_of(program, {RegionKind::backward, region.chunk}));
    }
  }
  return touching;
}

int microbatches_in_flight(const Program& program, const std::vector<int>& regions) {
  std::vector<const Region*> among;
  for (int region : regions) among.push_back(&program.regions[static_cast<size_t>(region)]);
  auto concerns = [&](const Action& action) {
    return std::any_of(among.begin(), among.end(), [&](const Region* region) {
      return region->kind == action.region && region->chunk == action.chunk;
    });
  };
  struct Window {
    int first = -1, last = -1;  // units
  };
  std::vector<Window> windows;  // by microbatch
  int unit_number = 0;
  for_each_unit(program.schedule, [&](std::span<const Action> unit) {
    for (const Action& action : unit) {
      if (!concerns(action)) continue;
      auto microbatch = static_cast<size_t>(action.microbatch);
      if (windows.size() <= microbatch) windows.resize(microbatch + 1);
      if (windows[microbatch].first < 0) windows[microbatch].first = unit_number;
      windows[microbatch].last = unit_number;
    }
    ++unit_number;
  });
  std::vector<int> change(program.schedule.size() + 1, 0);
  for (const Window& window : windows)
    if (window.first >= 0) ++change[static_cast<size_t>(window.first)], --change[static_cast<size_t>(window.last) + 1];
  std::partial_sum(change.begin(), change.end(), change.begin());
  return std::max(1, *std::max_element(change.begin(), change.end()));
}

bool regions_interleave(const Program& program) {
  std::vector<int> all;
  for (size_t i = 0; i < program.regions.size(); ++i) {
    const Region& region = program.regions[i];
    if (region.kind == RegionKind::weight || region.chunk > 0) return true;
    if (region.kind != RegionKind::update) all.push_back(static_cast<int>(i));
  }
  return microbatches_in_flight(program, all) > 1;
}

bool has_several_microbatches(const Program& program) {
  return std::any_of(program.schedule.begin(), program.schedule.end(), [&](const Action& action) {
    return action.region != RegionKind::update && action.microbatch != program.schedule.front().microbatch;
  });
}

namespace {

// Where ops of the comm lane are known to have ended: the first op behind each that waits for it, or for one that the
// same region started later: the lane keeps its order. By number; -1 where none waits.
std::vector<int> joined_at(const Program& program) {
  std::vector<const Op*> ops;
  for (const Region& region : program.regions)
    for (const Op& op : region.ops) ops.push_back(&op);
  std::vector<int> joined(ops.size(), -1);
  int at = 0;
  for (const Region& region : program.regions) {
    const int begin = at;
    std::vector<int> under_way;  // of this region, in the order in which they started
    for (const Op& op : region.ops) {
      for (int32_t other : op.waits) {
        if (other >= at) continue;
        if (int& end = joined[static_cast<size_t>(other)]; end < 0) end = at;
        if (other < begin) continue;
        const Op& awaited = *ops[static_cast<size_t>(other)];
        std::erase_if(under_way, [&](int before) {
          // One that a microbatch leaves out tells it nothing.
          bool in_order = !once_per_step(awaited) || awaited.runs_for == ops[static_cast<size_t>(before)]->runs_for;
          if (before > other || !in_order) return false;
          if (int& end = joined[static_cast<size_t>(before)]; end < 0) end = at;
          return true;
        });
      }
      if (on_comm_lane(op)) under_way.push_back(at);
      ++at;
    }
  }
  return joined;
}

// Operands of an op on the comm lane are in use until it is known to have ended; to the end where it never is.
void hold_until_joined(const Program& program, std::vector<Lifetime>& live) {
  std::vector<int> joined = joined_at(program);
  const int end = static_cast<int>(joined.size()) - 1;
  size_t at = 0;
  for (const Region& region : program.regions)
    for (const Op& op : region.ops) {
      if (on_comm_lane(op))
        for (const auto* ids : {&op.inputs, &op.outputs})
          for (ValueId id : *ids) {
            int& last = live[static_cast<size_t>(id)].last;
            last = std::max(last, joined[at] >= 0 ? joined[at] : end);
          }
      ++at;
    }
}

}  // namespace

namespace {

// Whether bytes of a value may be in use at any time of the step; by id.
std::vector<bool> live_throughout(const Program& program) {
  std::vector<bool> held(program.values.size(), false);
  for (const Region& region : program.regions)
    for (const Op& op : region.ops)
      if (op.def->holds_inputs)
        for (ValueId id : op.inputs) held[static_cast<size_t>(id)] = true;
  bool interleave = regions_interleave(program), several = has_several_microbatches(program);
  std::vector<std::vector<int>> touching = regions_touching(program);
  std::vector<bool> throughout(program.values.size(), false);
  for (const Value& value : program.values) {
    auto id = static_cast<size_t>(value.id);
    bool begun_here = is_step_sum(value.kind) && !several;
    bool from_outside = (is_persistent(value.kind) && !begun_here) || value.kind == ValueKind::feed;
    bool kept = value.kind == ValueKind::quantized && several;
    throughout[id] = from_outside || kept || held[id] || (interleave && touching[id].size() > 1);
  }
  return throughout;
}

bool wanted_at_the_end(const Value& value) {
  return value.kind == ValueKind::fetch || is_step_sum(value.kind);
}

PairLifetimes lifetimes_in(const Walk& walk, const std::vector<WalkStep>& steps, size_t values) {
  PairLifetimes pair{.steps = static_cast<int>(steps.size()),
                     .values = std::vector<Lifetime>(values),
                     .started = std::vector<int>(walk.op_count(), -1)};
  auto touch = [&](const Op& op, int at) {
    for (const auto* ids : {&op.inputs, &op.outputs})
      for (ValueId id : *ids) {
        Lifetime& l = pair.values[static_cast<size_t>(id)];
        if (l.first < 0) l.first = at;
        l.last = std::max(l.last, at);
      }
  };
  std::vector<int32_t> under_way;  // ops of the comm lane, in the order in which they started
  for (int at = 0; at < pair.steps; ++at) {
    const WalkStep& step = steps[static_cast<size_t>(at)];
    if (step.kind == WalkStep::Kind::start) {
      pair.started[static_cast<size_t>(step.op)] = at;
      touch(walk.op(step.op), at);
      if (on_comm_lane(walk.op(step.op))) under_way.push_back(step.op);
    } else if (step.kind == WalkStep::Kind::wait) {
      auto awaited = std::ranges::find(under_way, step.op);
      if (awaited == under_way.end()) continue;
      for (auto ended = under_way.begin(); ended != awaited + 1; ++ended) touch(walk.op(*ended), at);
      under_way.erase(under_way.begin(), awaited + 1);
    }
  }
  for (int32_t op : under_way) touch(walk.op(op), pair.steps - 1);
  return pair;
}

}  // namespace

std::vector<PairLifetimes> pair_lifetimes(const Program& program) {
  Walk walk(program);
  std::vector<PairLifetimes> pairs;
  std::vector<bool> throughout;
  for (const std::vector<WalkStep>& steps : walk.pairs()) {
    if (throughout.empty()) throughout = live_throughout(program);
    PairLifetimes& pair = pairs.emplace_back(lifetimes_in(walk, steps, program.values.size()));
    for (const Value& value : program.values) {
      Lifetime& l = pair.values[static_cast<size_t>(value.id)];
      if (throughout[static_cast<size_t>(value.id)]) l = {0, pair.steps - 1};
      if (l.used() && wanted_at_the_end(value)) l.last = pair.steps - 1;
    }
  }
  return pairs;
}

std::vector<Lifetime> lifetimes(const Program& program) {
  std::vector<Lifetime> live(program.values.size());
  int at = 0;
  auto touch = [&](ValueId id) {
    Lifetime& l = live[static_cast<size_t>(id)];
    if (l.first < 0) l.first = at;
    l.last = at;
  };
  for (const Region& region : program.regions) {
    for (const Op& op : region.ops) {
      for (ValueId id : op.inputs) touch(id);
      for (ValueId id : op.outputs) touch(id);
      ++at;
    }
  }
  hold_until_joined(program, live);
  std::vector<bool> throughout = live_throughout(program);
  for (const Value& value : program.values) {
    size_t id = static_cast<size_t>(value.id);
    Lifetime& l = live[id];
    if (!l.used()) continue;
    if (throughout[id]) l = {0, std::max(0, at - 1)};
    if (wanted_at_the_end(value)) l.last = std::max(0, at - 1);
  }
  return live;
}

}  // namespace sextant
