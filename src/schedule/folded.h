// Two copies of the model that run through the ranks in opposite directions, as ranks run them. Rank r of P and rank
// P−1−r hold the same two stages and do the same at the same time, each for its own microbatches: they are the two
// copies of one position, a pair along an axis of the mesh, and run one program. The positions 0 … P/2−1 hold the
// stages of a V; where it turns, a microbatch goes on at the other copy. So the schedule of the programs has half of
// the ranks and of the microbatches, and its stages are placed as a crossed V.
#pragma once

#include <string_view>

#include "schedule/pipeline.h"
#include "schedule/timing.h"

namespace sextant {

// From both_ways, as it is drawn and written, to crossed_v. UserError (place = `place`) where the ranks of a pair do
// not do the same: that can be drawn, and no program runs it.
PipelineSchedule folded(const PipelineSchedule& both_ways, std::string_view place = "pipeline.schedule");

// The other way; schedules that are not crossed_v as they are.
PipelineSchedule unfolded(const PipelineSchedule& schedule);
PipelineShape unfolded_shape(const PipelineSchedule& schedule);

// The seconds of a schedule's stages for the schedule as unfolded has it, where both copies have each stage.
Durations unfolded(const PipelineSchedule& schedule, Durations durations);

// The rank of both_ways that is at a position and copy of the crossed V, and what an action of the program is there.
int unfolded_rank(const PipelineShape& folded, int position, int copy);
Action unfolded_action(const PipelineShape& folded, int copy, Action action);

}  // namespace sextant
