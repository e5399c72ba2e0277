// Walks all ranks through their lists at once: the common ground of check (does it end?), timing (when?) and
// gradient_slots (how many message buffers?). In: a schedule in which every rank has its actions exactly once. Out: for
// each rank the actions that could run, with their times; a rank whose list is longer than that is stuck.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "schedule/pipeline.h"
#include "schedule/timing.h"

namespace sextant {

constexpr int kUnlimitedSlots = std::numeric_limits<int>::max();

// An event that must have happened before an action may start.
struct Need {
  enum class Until : uint8_t { ended, started };
  int rank = 0;
  Action action;
  Until until = Until::ended;
};

// The needs that pipeline.h names, and the one that reuse of gradient buffers adds: B of microbatch m writes the buffer
// that held microbatch m − slots, which the receiver must have begun to use up.
std::vector<Need> needs(const PipelineSchedule& schedule, int rank, const Action& action, int gradient_slots);

// Of one part of a unit, without what an earlier part of it does.
std::vector<Need> needs_from_elsewhere(const PipelineSchedule& schedule, int rank, std::span<const Action> unit,
                                       size_t part, int gradient_slots);

struct ScheduleWalk {
  std::vector<std::vector<TimedAction>> ranks;
};

ScheduleWalk walk(const PipelineSchedule& schedule, const Durations& durations, int gradient_slots = kUnlimitedSlots);

}  // namespace sextant
