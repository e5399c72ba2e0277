// swish: y = x·sigmoid(beta·x) (Ramachandran et al. 2017). With beta = 1 it is SiLU, with beta = 1.702 the "quick"
// GELU. Saves x.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

const OpDef swish{
    .name = "swish",
    .contract = "y = x/(1 + exp(−beta·x)).",
    .operands = "x[*] -> y[*]",
    .attrs = {"beta"},
    .rows = {"*"},
    .backward =
        [](BackwardScope& s) {
          s.emit({swish_backward, {s.output_gradient(0), s.input(0)}, {0}, s.op().attrs});
        },
    .cost = streaming_cost(5),
    .alias = {{.output = 0, .input = 0}},
    .examples = {{.name = "silu", .inputs = {f64({2, 4, 6})}, .attrs = {{"beta", 1.0}}},
                 {.name = "quick_gelu", .inputs = {f64({2, 4, 6})}, .attrs = {{"beta", 1.702}}}},
};

const OpDef swish_backward{
    .name = "swish_backward",
    .contract = "dx = dy·s·(1 + beta·x·(1 − s)) with s = 1/(1 + exp(−beta·x)).",
    .operands = "dy[*], x[*] -> dx[*]",
    .attrs = {"beta"},
    .rows = {"*"},
    .cost = streaming_cost(9),
    .alias = {{.output = 0, .input = 0}},
    .examples = {{.name = "small", .inputs = {f64({2, 4, 6}), f64({2, 4, 6})}, .attrs = {{"beta", 1.702}}}},
};

}  // namespace sextant::ops
