#include <algorithm>

#include "schedule/check.h"
#include "schedule/timing.h"
#include "schedule/walk.h"

namespace sextant {

namespace {

bool as_fast_as(const ScheduleWalk& limited, const ScheduleWalk& free) {
  for (size_t rank = 0; rank < free.ranks.size(); ++rank) {
    if (limited.ranks[rank].size() < free.ranks[rank].size()) return false;  // locked up
    if (limited.ranks[rank].back().end > free.ranks[rank].back().end) return false;
  }
  return true;
}

}  // namespace

int gradient_slots(const PipelineSchedule& schedule) {
  Durations equal = uniform_durations(schedule.shape);
  ScheduleWalk free = walk(schedule, equal);
  auto suffice = [&](int slots) { return as_fast_as(walk(schedule, equal, slots), free); };
  // More slots only remove waits, so the numbers that suffice are those from some number on: mostly a small one.
  int too_few = 0, enough = 1;
  while (enough < schedule.shape.microbatches && !suffice(enough)) {
    too_few = enough;
    enough = std::min(2 * enough, schedule.shape.microbatches);
  }
  while (enough - too_few > 1) {
    int slots = too_few + (enough - too_few) / 2;
    (suffice(slots) ? enough : too_few) = slots;
  }
  return enough;
}

}  // namespace sextant
