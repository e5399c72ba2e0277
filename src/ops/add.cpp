// add: y = a + b. Nothing is saved; both gradients are dy itself.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

const OpDef add{
    .name = "add",
    .contract = "y = a + b, element by element.",
    .operands = "a[*], b[*] -> y[*]",
    .rows = {"*", "a:P b:P -> y:P"},
    .backward =
        [](BackwardScope& s) {
          for (int i : {0, 1})
            if (s.needs_gradient(i)) s.pass(i, s.output_gradient(0));
        },
    .cost = streaming_cost(1),
    .alias = {{.output = 0, .input = 0}, {.output = 0, .input = 1}},
    // with a dropout mask where there is dropout
    .passes = {.compiled = {1, 1}, .jit = {1.3, 1}, .eager = {1, 1}},
    .examples = {{.name = "matrix", .inputs = {f64({3, 5}), f64({3, 5})}},
                 {.name = "cube", .inputs = {f64({2, 4, 6}), f64({2, 4, 6})}}},
};

}  // namespace sextant::ops
