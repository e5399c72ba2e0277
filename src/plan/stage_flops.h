// Flops of each pipeline stage for one microbatch, by the ops' own costs: the durations of a schedule drawn before
// anything has run.
#pragma once

#include "run/programs.h"
#include "schedule/timing.h"

namespace sextant {

// Of the regions of one kind; of one chunk where `chunk` is not negative. One rank's share.
Flops region_flops(const Program& program, RegionKind kind, int chunk = -1);

// Of the schedule that the programs follow, in units of `unit` floating-point operations.
Durations stage_flops(const RunPrograms& programs, const PipelineSchedule& pipeline, Flops unit);

}  // namespace sextant
