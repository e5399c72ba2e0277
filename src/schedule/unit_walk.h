// When the ranks of a schedule can be through at the earliest, unit by unit: a rank comes to what a later part of a
// unit receives while it is at work on the first, and hands on what a part has made before the unit ends.
// (schedule/timing.h takes a unit as a whole, which a schedule that pairs forwards with backwards need not wait for.)
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "schedule/pipeline.h"

namespace sextant {

// Seconds, from the start of the unit.
struct UnitTimes {
  double seconds = 0;
  double forward_arrives = 0, backward_arrives = 0;  // at the next stage
  // When the rank comes to what its backward receives, behind a forward, less what it may catch up on by waiting there.
  double backward_received = 0;
  bool forward_sent_behind = false;  // behind that
};

using TimesOfUnit = std::function<UnitTimes(int rank, std::span<const Action> unit)>;

// By rank: the end of its last unit. In: a schedule that check() accepts.
std::vector<double> earliest_ends(const PipelineSchedule& schedule, const TimesOfUnit& times);

}  // namespace sextant
