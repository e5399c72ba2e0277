// The schedules themselves: each gives, for one rank of a shape it is defined for, which actions run in which order.
// schedules.h says for which shapes they are defined; make_schedule (pipeline.h) is the way to call them.
#pragma once

#include <vector>

#include "schedule/pipeline.h"

namespace sextant {

using Order = std::vector<Action>;

Order gpipe(const PipelineShape& shape, int rank);
Order one_f_one_b(const PipelineShape& shape, int rank);
Order interleaved(const PipelineShape& shape, int rank);
Order breadth_first(const PipelineShape& shape, int rank);
Order zb_h1(const PipelineShape& shape, int rank);
Order zbv(const PipelineShape& shape, int rank);
Order combined_1f1b(const PipelineShape& shape, int rank);
Order dualpipev(const PipelineShape& shape, int rank);
Order dualpipe(const PipelineShape& shape, int rank);

}  // namespace sextant
