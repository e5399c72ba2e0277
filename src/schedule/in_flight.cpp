#include <algorithm>
#include <span>

#include "schedule/check.h"

namespace sextant {

namespace {

// The most microbatches between the start of `from` and the end of `to`, both of one chunk. What a unit begins is there
// before any of what it ends is gone.
int window(std::span<const Action> actions, int chunk, RegionKind from, RegionKind to) {
  int open = 0, most = 0;
  while (!actions.empty()) {
    std::span<const Action> unit = leading_unit(actions);
    auto count = [&](RegionKind kind) {
      return static_cast<int>(std::ranges::count_if(
          unit, [&](const Action& action) { return action.chunk == chunk && action.region == kind; }));
    };
    most = std::max(most, open += count(from));
    open -= count(to);
    actions = actions.subspan(unit.size());
  }
  return most;
}

}  // namespace

InFlight in_flight(const PipelineSchedule& schedule, int rank, int chunk) {
  const auto& actions = schedule.ranks[static_cast<size_t>(rank)];
  InFlight counts;
  counts.forward_to_backward = window(actions, chunk, RegionKind::forward, RegionKind::backward);
  counts.forward_to_weight = counts.forward_to_backward;
  if (!schedule.defers_weights()) return counts;
  counts.forward_to_weight = window(actions, chunk, RegionKind::forward, RegionKind::weight);
  counts.backward_to_weight = window(actions, chunk, RegionKind::backward, RegionKind::weight);
  return counts;
}

}  // namespace sextant
