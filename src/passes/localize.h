// localize: replaces ops whose local work differs from the same op on local shapes (their definition has a `localize`),
// now that the layouts are known: cross-entropy over a split vocabulary, attention over a split sequence.
#pragma once

#include "ir/graph.h"

namespace sextant {

void localize(Graph& graph);

}  // namespace sextant
