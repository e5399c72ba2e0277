// dropout: y = x with elements left out at random, the others divided by 1 − rate so that the mean stays. What is left
// out follows from the key of the sequence (a feed, which changes with every sequence of every step), the site in the
// model and the element's place in the whole tensor (exec/dropout_mask.h): the same on every mesh, and again in
// backward, which is the same op. So nothing is saved.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

// Linear in x: where ranks hold terms of a sum, all of them leave out the same elements.
const OpDef dropout{
    .name = "dropout",
    .contract =
        "y[b,s,h] = x[b,s,h] / (1 − dropout) where the 32 bits of Philox for (keys[b], site, s, h) are at least "
        "dropout·2^32, else 0.",
    .operands = "x[b s h], keys[b] -> y[b s h]",
    .attrs = {"dropout", "site"},
    .rows = {"b", "s", "h", "x:P keys:R -> y:P"},
    .backward =
        [](BackwardScope& s) {
          s.emit({dropout, {s.output_gradient(0), s.input(1)}, {0}, s.op().attrs});
        },
    .cost = streaming_cost(1),
    .alias = {{.output = 0, .input = 0}},
    // Elsewhere a mask of a byte for each element is written beside the result.
    .passes = {.compiled = {1, 1}, .jit = {1.25, 1}, .eager = {1.25, 1}},
    .examples = {{.name = "half",
                  .inputs = {f64({2, 4, 6}), i64({2})},
                  .attrs = {{"dropout", 0.5}, {"site", 3}},
                  .integers_below = 1000},
                 {.name = "wide",
                  .inputs = {f64({4, 12, 24}), i64({4})},
                  .attrs = {{"dropout", 0.1}, {"site", 0}},
                  .integers_below = 1000}},
};

}  // namespace sextant::ops
