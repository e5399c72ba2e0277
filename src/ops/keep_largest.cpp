// keep_largest: the larger of two, in place: how maxima are kept over microbatches, as accumulate adds up sums.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

const OpDef keep_largest{
    .name = "keep_largest",
    .contract = "largest = max(total, x), written over total; NaN where one of them is.",
    .operands = "total[*], x[*] -> largest[*]",
    .rows = {"*", "total:P(max) x:P(max) -> largest:P(max)"},
    .cost = streaming_cost(1),
    .alias = {{.output = 0, .input = 0, .rule = Alias::Rule::must}},
    .recompute = Recompute::never,
    .examples = {{.name = "matrix", .inputs = {f64({3, 5}), f64({3, 5})}}},
};

}  // namespace sextant::ops
