// row_gate: each row times the sigmoid of a number of its own: what a shared expert gives in Qwen 2's models. Saves
// both inputs.
//
// No row along u: it is a single number.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

const OpDef row_gate{
    .name = "row_gate",
    .contract = "y = sigmoid(gate)·x, one gate for each row.",
    .operands = "x[b s h], gate[b s u] -> y[b s h]",
    .rows = {"b", "s", "x:S(h) gate:R -> y:S(h)", "x:P gate:R -> y:P"},
    .backward =
        [](BackwardScope& s) {
          s.emit({row_gate_backward, {s.output_gradient(0), s.input(0), s.input(1)}, {0, 1}});
        },
    .cost = streaming_cost(1),
    .examples = {{.name = "small", .inputs = {f64({2, 4, 12}), f64({2, 4, 1})}},
                 {.name = "three", .inputs = {f64({3, 12, 4}), f64({3, 12, 1})}}},
};

const OpDef row_gate_backward{
    .name = "row_gate_backward",
    .contract = "dx = sigmoid(gate)·dy, dgate = sigmoid'(gate)·Σ dy·x.",
    .operands = "dy[b s h], x[b s h], gate[b s u] -> dx[b s h], dgate[b s u]",
    .shape = [](const Attrs&, auto in) -> TensorTypes {
      return {in[1], in[2]};
    },
    .rows = {"b", "s", "dy:S(h) x:S(h) gate:R -> dx:S(h) dgate:P", "dy:R x:P gate:R -> dx:R dgate:P"},
    .cost = streaming_cost(3),
    .alias = {{.output = 0, .input = 0}},
    .examples = {{.name = "small", .inputs = {f64({2, 4, 12}), f64({2, 4, 12}), f64({2, 4, 1})}}},
};

}  // namespace sextant::ops
