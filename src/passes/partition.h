// partition: from the global Graph to the Program of one pipeline rank: local shapes, the ops of its stages sorted into
// regions, messages where a value is made on one rank and used on another, and the order in which the regions run. A
// Program has the values that its ops touch, renumbered in the Graph's order.
#pragma once

#include <vector>

#include "ir/graph.h"
#include "ir/plan.h"
#include "ir/program.h"
#include "schedule/pipeline.h"

namespace sextant {

Program partition(const Graph& graph, const PipelineSchedule& schedule, int rank);

// Of all pipeline ranks, in order. `deferred`: what goes to the W of a schedule that has them.
std::vector<Program> partition_all(Graph graph, const PipelineSchedule& schedule, DeferredGradients deferred);

}  // namespace sextant
