// scale: y = factor·x, for models that multiply what they embed, add or judge by a constant (Gemma, Granite). Saves
// nothing; the gradient is the same op.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

const OpDef scale{
    .name = "scale",
    .contract = "y = factor·x, element by element.",
    .operands = "x[*] -> y[*]",
    .attrs = {"factor"},
    .rows = {"*", "x:P -> y:P"},
    .backward =
        [](BackwardScope& s) {
          s.emit({scale, {s.output_gradient(0)}, {0}, s.op().attrs});
        },
    .cost = streaming_cost(1),
    .alias = {{.output = 0, .input = 0}},
    .examples = {{.name = "matrix", .inputs = {f64({3, 5})}, .attrs = {{"factor", 0.3}}},
                 {.name = "cube", .inputs = {f64({2, 4, 6})}, .attrs = {{"factor", -12.0}}}},
};

}  // namespace sextant::ops
