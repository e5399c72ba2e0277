// relu: y = max(x, 0), as in OPT. Saves y, which what comes after it saves anyway. squared_relu: y = max(x, 0)², as in
// Nemotron. Saves x.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

const OpDef relu{
    .name = "relu",
    .contract = "y = max(x, 0).",
    .operands = "x[*] -> y[*]",
    .rows = {"*"},
    .backward =
        [](BackwardScope& s) {
          s.emit({relu_backward, {s.output_gradient(0), s.output(0)}, {0}});
        },
    .cost = streaming_cost(1),
    .alias = {{.output = 0, .input = 0}},
    .examples = {{.name = "small", .inputs = {f64({2, 4, 6})}}},
};

const OpDef relu_backward{
    .name = "relu_backward",
    .contract = "dx = dy where y > 0, else 0.",
    .operands = "dy[*], y[*] -> dx[*]",
    .rows = {"*"},
    .cost = streaming_cost(1),
    .alias = {{.output = 0, .input = 0}},
    .examples = {{.name = "small", .inputs = {f64({2, 4, 6}), f64({2, 4, 6})}}},
};

const OpDef squared_relu{
    .name = "squared_relu",
    .contract = "y = max(x, 0)².",
    .operands = "x[*] -> y[*]",
    .rows = {"*"},
    .backward =
        [](BackwardScope& s) {
          s.emit({squared_relu_backward, {s.output_gradient(0), s.input(0)}, {0}});
        },
    .cost = streaming_cost(2),
    .alias = {{.output = 0, .input = 0}},
    .examples = {{.name = "small", .inputs = {f64({2, 4, 6})}}},
};

const OpDef squared_relu_backward{
    .name = "squared_relu_backward",
    .contract = "dx = dy·2·max(x, 0).",
    .operands = "dy[*], x[*] -> dx[*]",
    .rows = {"*"},
    .cost = streaming_cost(3),
    .alias = {{.output = 0, .input = 0}},
    .examples = {{.name = "small", .inputs = {f64({2, 4, 6}), f64({2, 4, 6})}}},
};

}  // namespace sextant::ops
