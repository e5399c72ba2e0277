// row_bias: a bias that is added to every row, where the linear in front has none: behind linear_wide, whose sums are
// f32 while its bias is a parameter like others (the router of gpt-oss).
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

const OpDef row_bias{
    .name = "row_bias",
    .contract = "y = x + bias, for every row.",
    .operands = "x[b s o], bias[o] -> y[b s o]",
    .rows = {"b", "s", "o", "x:P bias:P -> y:P"},
    .backward =
        [](BackwardScope& s) {
          ValueId dy = s.output_gradient(0);
          if (s.needs_gradient(0)) s.pass(0, dy);
          if (s.needs_gradient(1)) s.emit({linear_bias_gradient, {dy}, {1}, {}, Phase::weight_gradient});
        },
    .cost = streaming_cost(1),
    .alias = {{.output = 0, .input = 0}},
    .examples = {{.name = "plain", .inputs = {f64({2, 3, 6}), f64({6})}}},
};

}  // namespace sextant::ops
