// accumulate: total += x, in place. How gradients add up over microbatches when the op that makes one cannot add
// itself.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

const OpDef accumulate{
    .name = "accumulate",
    .contract = "sum = total + x, written over total.",
    .operands = "total[*], x[*] -> sum[*]",
    .rows = {"*", "total:P x:P -> sum:P"},
    .cost = streaming_cost(1),
    .alias = {{.output = 0, .input = 0, .rule = Alias::Rule::must}},
    .recompute = Recompute::never,
    .examples = {{.name = "matrix", .inputs = {f64({3, 5}), f64({3, 5})}}},
};

}  // namespace sextant::ops
