#include <algorithm>

#include "schedule/check.h"

namespace sextant {

namespace {

// The most microbatches between the start of `from` and the end of `to`, both of one chunk.
int window(const std::vector<Action>& actions, int chunk, RegionKind from, RegionKind to) {
  int open = 0, most = 0;
  for (const Action& action : actions) {
    if (action.chunk != chunk) continue;
    if (action.region == from) most = std::max(most, ++open);
    if (action.region == to) --open;
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
