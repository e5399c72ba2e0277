// What each pipeline stage computes for one microbatch, by the ops' own costs: the durations of a schedule drawn before
// anything has run.
#pragma once

#include "run/programs.h"
#include "schedule/timing.h"

namespace sextant {

// Of the regions of one kind; of one chunk where `chunk` is not negative. One rank's share.
Flops region_flops(const Program& program, RegionKind kind, int chunk = -1);

// In units of `unit` floating-point operations. Where the schedule keeps two copies of the model, `programs` are those
// of one (one_copy of run/programs.h).
Durations stage_flops(const RunPrograms& programs, const PipelineSchedule& pipeline, Flops unit);

}  // namespace sextant
