#include "schedule/timing.h"

#include <algorithm>

#include "base/error.h"
#include "schedule/walk.h"

namespace sextant {

Durations uniform_durations(const PipelineShape& shape, const StageSeconds& each) {
  auto stages = static_cast<size_t>(shape.stages());
  return {.forward = std::vector<double>(stages, each.forward),
          .backward = std::vector<double>(stages, each.backward),
          .weight = std::vector<double>(stages, each.weight)};
}

double TimedSchedule::makespan() const {
  double end = 0;
  for (const auto& actions : ranks)
    if (!actions.empty()) end = std::max(end, actions.back().end);
  return end;
}

double TimedSchedule::span(int rank) const {
  const auto& actions = ranks[static_cast<size_t>(rank)];
  return actions.empty() ? 0 : actions.back().end - actions.front().start;
}

double TimedSchedule::bubble(int rank) const {
  double idle = 0;
  const auto& actions = ranks[static_cast<size_t>(rank)];
  for (size_t i = 1; i < actions.size(); ++i)
    if (!actions[i - 1].action.with_next) idle += actions[i].start - actions[i - 1].end;
  return idle;
}

double TimedSchedule::max_bubble() const {
  double most = 0;
  for (int rank = 0; rank < shape.ranks; ++rank) most = std::max(most, bubble(rank));
  return most;
}

double TimedSchedule::bubble_fraction() const {
  double most = 0;
  for (int rank = 0; rank < shape.ranks; ++rank)
    if (span(rank) > 0) most = std::max(most, bubble(rank) / span(rank));
  return most;
}

TimedSchedule simulate_schedule(const PipelineSchedule& schedule, const Durations& durations) {
  ScheduleWalk done = walk(schedule, durations);
  for (size_t rank = 0; rank < schedule.ranks.size(); ++rank)
    BUG_IF(done.ranks[rank].size() < schedule.ranks[rank].size(), "schedule {} was not checked: rank {} stops",
           schedule.name, rank);
  return {.name = schedule.name, .shape = schedule.shape, .ranks = std::move(done.ranks)};
}

}  // namespace sextant
