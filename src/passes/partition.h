// partition: from the global Graph to one rank's Program: local shapes, ops sorted into regions, and the order in which the
// regions run over the microbatches.
#pragma once

#include "ir/graph.h"
#include "ir/plan.h"
#include "ir/program.h"

namespace sextant {

Program partition(Graph graph, const Plan& plan);

}  // namespace sextant
