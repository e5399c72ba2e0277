// Which ops of a Graph run in the W of a schedule that defers weight gradients: those that make them, and those that go
// on with what they made (messages and sums over ranks and microbatches).
#pragma once

#include <vector>

#include "ir/graph.h"
#include "ir/plan.h"

namespace sextant {

// By op.
std::vector<bool> deferred_ops(const Graph& graph, DeferredGradients deferred);

}  // namespace sextant
