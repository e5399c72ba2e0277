// weighted_swiglu: swiglu of the slots of experts (expert_linear.cpp), each times its routing weight. The weight goes
// here and not onto the expert's output because the linear behind is linear: what is saved for its gradient is then x
// alone, and not the outputs of all slots.
//
// weighted_swiglu_rows is the same for rows that dispatch brought to their experts (dispatch.cpp), which have a weight
// each.
//
// No row along k: slots are split with their tokens.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

const OpDef weighted_swiglu{
    .name = "weighted_swiglu",
    .contract = "y of slot (t, j) = weights[t, j]·silu(gate)·up with x = gate|up.",
    .operands = "x[b n g], weights[b s k] -> y[b n f]",
    .shape = [](const Attrs&, auto in) -> TensorTypes {
      return {{in[0].dtype, {in[0].shape[0], in[0].shape[1], in[0].shape[2] / 2}}};
    },
    .rows = {"x:S(b) weights:S(b) -> y:S(b)", "x:S(n) weights:S(s) -> y:S(n)", "x:S(g) weights:R -> y:S(f)"},
    .backward =
        [](BackwardScope& s) {
          s.emit({weighted_swiglu_backward, {s.output_gradient(0), s.input(0), s.input(1)}, {0, 1}});
        },
    .cost = streaming_cost(7),
    .gated = true,
    .examples = {{.name = "two_slots", .inputs = {f64({2, 8, 12}), f64({2, 4, 2})}},
                 {.name = "one_slot", .inputs = {f64({3, 12, 8}), f64({3, 12, 1})}}},
};

const OpDef weighted_swiglu_backward{
    .name = "weighted_swiglu_backward",
    .contract = "dgate = w·dy·up·silu'(gate), dup = w·dy·silu(gate), dweights = Σ dy·silu(gate)·up.",
    .operands = "dy[b n f], x[b n g], weights[b s k] -> dx[b n g], dweights[b s k]",
    .shape = [](const Attrs&, auto in) -> TensorTypes {
      return {in[1], in[2]};
    },
    .rows = {"dy:S(b) x:S(b) weights:S(b) -> dx:S(b) dweights:S(b)",
             "dy:S(n) x:S(n) weights:S(s) -> dx:S(n) dweights:S(s)", "dy:S(f) x:S(g) weights:R -> dx:S(g) dweights:P"},
    .cost = streaming_cost(9),
    .alias = {{.output = 0, .input = 1}},
    .examples = {{.name = "two_slots", .inputs = {f64({2, 8, 6}), f64({2, 8, 12}), f64({2, 4, 2})}}},
};

const OpDef weighted_swiglu_rows{
    .name = "weighted_swiglu_rows",
    .contract = "y of a row = its weight·silu(gate)·up with x = gate|up.",
    .operands = "x[a c n g], weights[a c n] -> y[a c n f]",
    .shape = [](const Attrs&, auto in) -> TensorTypes {
      const GlobalShape& x = in[0].shape;
      return {{in[0].dtype, {x[0], x[1], x[2], x[3] / 2}}};
    },
    .rows = {"a", "c", "n", "x:S(g) weights:R -> y:S(f)"},
    .backward =
        [](BackwardScope& s) {
          s.emit({weighted_swiglu_rows_backward, {s.output_gradient(0), s.input(0), s.input(1)}, {0, 1}});
        },
    .cost = streaming_cost(7),
    .gated = true,
    .examples = {{.name = "two_groups", .inputs = {f64({2, 2, 4, 12}), f64({2, 2, 4})}}},
};

const OpDef weighted_swiglu_rows_backward{
    .name = "weighted_swiglu_rows_backward",
    .contract = "As weighted_swiglu_backward.",
    .operands = "dy[a c n f], x[a c n g], weights[a c n] -> dx[a c n g], dweights[a c n]",
    .shape = [](const Attrs&, auto in) -> TensorTypes {
      return {in[1], in[2]};
    },
    .rows = {"a", "c", "n", "dy:S(f) x:S(g) weights:R -> dx:S(g) dweights:P"},
    .cost = streaming_cost(9),
    .alias = {{.output = 0, .input = 1}},
    .examples = {{.name = "two_groups", .inputs = {f64({2, 2, 4, 6}), f64({2, 2, 4, 12}), f64({2, 2, 4})}}},
};

}  // namespace sextant::ops
