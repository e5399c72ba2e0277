// autodiff: appends the backward ops. Each op's definition says how gradients pass it; layouts of gradients are the
// duals of the forward layouts. A parameter's gradient is a persistent value "grad.PATH" onto which every use adds;
// values that the model wants added up over a step's microbatches (Builder::tally) get a "tally.PATH" likewise.
#pragma once

#include <utility>
#include <vector>

#include "ir/graph.h"

namespace sextant {

// A value to differentiate, and the value that is its gradient.
struct Loss {
  ValueId loss = kNoValue, seed = kNoValue;
};

// The gradients are those of the sum of the losses. With ZeRO 2 and 3 a gradient is stored sharded over the data axes,
// and every microbatch's contribution is reduced to that.
struct Differentiation {
  std::vector<Loss> losses;
  int zero = 0;
  int64_t exact_parts = 0;  // as in Plan
};
void autodiff(Graph& graph, const Differentiation& what);

// The last version of every tally of this kind after backward, with the parameter it belongs to.
std::vector<std::pair<ValueId, ValueId>> tallies(const Graph& graph, TallyOf counted);

// The last version of a parameter's gradient after backward, by parameter id; parameters that nothing uses have none.
std::vector<std::pair<ValueId, ValueId>> parameter_gradients(const Graph& graph);

}  // namespace sextant
