// duplicate: the same bytes in another place: a weight as it was before its update, a number that is handed out.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

const OpDef duplicate{
    .name = "duplicate",
    .contract = "y = x.",
    .operands = "x[*] -> y[*]",
    .rows = {"*", "x:P -> y:P", "x:P(max) -> y:P(max)"},
    .cost = streaming_cost(0),
    .recompute = Recompute::never,
    .examples = {{.name = "matrix", .inputs = {f64({3, 5})}}},
};

}  // namespace sextant::ops
