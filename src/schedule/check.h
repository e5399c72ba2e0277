// Checks a schedule before anything is built on it, and derives the numbers that memory planning reads from it.
#pragma once

#include <string_view>

#include "schedule/pipeline.h"

namespace sextant {

// UserError (place = `place`) unless
// - each rank runs F, B and, if the schedule defers weight gradients, W of its chunks once for every microbatch;
// - the F of a chunk run in microbatch order, so do its B, so do its W;
// - every unit is one action, B and its own W, or F beside a B with or without that one's W;
// - no rank waits for ever, where a send never blocks and a receive waits for its send.
// The error names the rank and the actions; of a deadlock, the whole ring.
void check(const PipelineSchedule& schedule, std::string_view place = "pipeline.schedule");

// How many microbatches a rank holds at most between two actions of a chunk: from the start of the first to the end of
// the second. As both run in microbatch order, microbatch m may use slot m mod that number.
struct InFlight {
  int forward_to_backward = 0;
  int forward_to_weight = 0;   // the same as forward_to_backward when W is not deferred
  int backward_to_weight = 0;  // 0 when W is not deferred
};

InFlight in_flight(const PipelineSchedule& schedule, int rank, int chunk);

// Messages forward are kept until the B of their microbatch and need no other buffer. A gradient on its way from stage
// s to s−1 lies in slot (microbatch mod slots): B of stage s, microbatch m + slots may start only after B of stage s−1,
// microbatch m has started. This is the least number of slots, for all stages, with which nothing locks up and, all
// actions being equally long, no rank ends later than with as many slots as microbatches. In: a schedule that check()
// accepts.
int gradient_slots(const PipelineSchedule& schedule);

}  // namespace sextant
