// prune: drops ops nobody needs: no output is read, fetched, or updates something that persists.
#pragma once

#include "ir/graph.h"

namespace sextant {

void prune(Graph& graph);

}  // namespace sextant
