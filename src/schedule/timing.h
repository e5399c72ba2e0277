// A schedule simulated: when each action starts and ends if the ranks run their lists in order, each action as soon as
// what it needs (pipeline.h) is done and has arrived. In: a schedule that check() accepts and the seconds each stage
// takes. Out: the times, and the bubbles: idle time of a rank between its own first and last action.
#pragma once

#include <string>
#include <vector>

#include "schedule/pipeline.h"

namespace sextant {

// In seconds, per stage. B of a schedule without W takes backward + weight.
struct Durations {
  std::vector<double> forward, backward, weight;
  double message = 0;     // from one rank to another; nothing within a rank
  double pair_saves = 0;  // how much less a pair takes than its parts one after the other
};

struct StageSeconds {
  double forward = 1, backward = 1, weight = 1;
};

Durations uniform_durations(const PipelineShape& shape, const StageSeconds& each = {});

struct TimedAction {
  Action action;
  double start = 0, end = 0;  // seconds; of the whole unit that it is part of
};

struct TimedSchedule {
  std::string name;
  PipelineShape shape;
  std::vector<std::vector<TimedAction>> ranks;

  double makespan() const;         // the end of the last action; the first starts at 0
  double span(int rank) const;     // from the start of its first to the end of its last action
  double bubble(int rank) const;   // the idle part of the span
  double max_bubble() const;       // over ranks
  double bubble_fraction() const;  // the largest bubble / span over ranks
};

TimedSchedule simulate_schedule(const PipelineSchedule& schedule, const Durations& durations);

}  // namespace sextant
