// recompute: trades memory for time. Backward ops that read a forward value may read a copy computed again just before,
// so that the value itself need not live from forward to backward.
//   none       nothing is computed again, but gathered values (ZeRO-3 weights, sequence-parallel inputs) are gathered
//   again
//              in every mode: kept, they would take the memory that sharding saved
//   norms      normalisations only: of the cheap ops those that save most for their time
//   selective  cheap ops (bound by memory, not arithmetic) whose inputs are saved anyway: norms, activations
//   latent     selective, and the linears that make queries, keys and values of the narrow rows of latent attention: a
//              token's narrow rows are saved in place of all its heads
//   full       everything inside a block: only what enters the block is saved
#pragma once

#include "ir/graph.h"
#include "ir/plan.h"

namespace sextant {

void recompute(Graph& graph, RecomputeMode mode);

}  // namespace sextant
