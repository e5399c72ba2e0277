// infer: gives every forward value its layout and inserts a redistribution wherever an op needs an operand in another
// one. It never searches: parameters, feeds and the explicit redistributions of nn/ are pins; every other op takes,
// axis by axis, the row that sends the fewest bytes forward, then the one that moves the fewest operands, then the
// earlier one. One redistribution per (value, target layout).
#pragma once

#include "ir/graph.h"

namespace sextant {

// `phase`: forward for the model, update for the optimizer's ops.
void infer(Graph& graph, Phase phase);

}  // namespace sextant
