// weighted_swiglu: swiglu of the slots of experts (expert_linear.cpp), each times its routing weight. The weight goes
// here and not onto the expert's output because the linear behind is linear: what is saved for its gradient is then x
// alone, and not the outputs of all slots.
//
// With on_input=1 the weight is that of the expert's input (Llama 4): gate and up, which are linear in it, are
// multiplied by it here, in front of the product, and no second copy of the input is needed.
//
// weighted_swiglu_rows is the same for rows that dispatch brought to their experts (dispatch.cpp), which have a weight
// each.
//
// in_order: slots stand in the order of experts that `order` (slot_order.cpp) tells, weights as they are.
//
// No row along k: slots are split with their tokens.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

const OpDef weighted_swiglu{
    .name = "weighted_swiglu",
    .contract =
        "y of slot (t, j) = w·silu(gate)·up with x = gate|up, w = weights[t, j]; silu(w·gate)·w·up with on_input=1.",
    .operands = "x[b n g], weights[b s k], order?[b s p] -> y[b n f]",
    .attrs = {"on_input", "in_order"},
    .shape = [](const Attrs&, auto in) -> TensorTypes {
      return {{in[0].dtype, {in[0].shape[0], in[0].shape[1], in[0].shape[2] / 2}}};
    },
    .rows = {"x:S(b) weights:S(b) -> y:S(b)", "x:S(n) weights:S(s) -> y:S(n)", "x:S(g) weights:R -> y:S(f)"},
    .backward =
        [](BackwardScope& s) {
          s.emit({weighted_swiglu_backward, {s.output_gradient(0), s.input(0), s.input(1)}, {0, 1}, s.op().attrs});
        },
    .cost = streaming_cost(7),
    .gated = true,
    .examples = {{.name = "two_slots", .inputs = {f64({2, 8, 12}), f64({2, 4, 2})}},
                 {.name = "one_slot", .inputs = {f64({3, 12, 8}), f64({3, 12, 1})}},
                 {.name = "on_input", .inputs = {f64({2, 8, 12}), f64({2, 4, 2})}, .attrs = {{"on_input", 1}}}},
};

const OpDef weighted_swiglu_backward{
    .name = "weighted_swiglu_backward",
    .contract =
        "dgate = w·dy·up·silu'(gate), dup = w·dy·silu(gate), dweights = Σ dy·silu(gate)·up. With on_input=1 dgate = "
        "w·a with a = dy·w·up·silu'(w·gate), dup = w·c with c = dy·silu(w·gate), dweights = Σ a·gate + c·up.",
    .operands = "dy[b n f], x[b n g], weights[b s k], order?[b s p] -> dx[b n g], dweights[b s k]",
    .attrs = {"on_input", "in_order"},
    .shape = [](const Attrs&, auto in) -> TensorTypes {
      return {in[1], in[2]};
    },
    .rows = {"dy:S(b) x:S(b) weights:S(b) -> dx:S(b) dweights:S(b)",
             "dy:S(n) x:S(n) weights:S(s) -> dx:S(n) dweights:S(s)", "dy:S(f) x:S(g) weights:R -> dx:S(g) dweights:P"},
    .cost = streaming_cost(9),
    .alias = {{.output = 0, .input = 1}},
    .examples = {{.name = "two_slots", .inputs = {f64({2, 8, 6}), f64({2, 8, 12}), f64({2, 4, 2})}},
                 {.name = "on_input",
                  .inputs = {f64({2, 8, 6}), f64({2, 8, 12}), f64({2, 4, 2})},
                  .attrs = {{"on_input", 1}}}},
};

const OpDef weighted_swiglu_rows{
    .name = "weighted_swiglu_rows",
    .contract = "y of a row as of a slot in weighted_swiglu, with the weight of the row.",
    .operands = "x[a c n g], weights[a c n] -> y[a c n f]",
    .attrs = {"on_input"},
    .shape = [](const Attrs&, auto in) -> TensorTypes {
      const GlobalShape& x = in[0].shape;
      return {{in[0].dtype, {x[0], x[1], x[2], x[3] / 2}}};
    },
    .rows = {"a", "c", "n", "x:S(g) weights:R -> y:S(f)"},
    .backward =
        [](BackwardScope& s) {
          s.emit({weighted_swiglu_rows_backward, {s.output_gradient(0), s.input(0), s.input(1)}, {0, 1}, s.op().attrs});
        },
    .cost = streaming_cost(7),
    .gated = true,
    .examples = {{.name = "two_groups", .inputs = {f64({2, 2, 4, 12}), f64({2, 2, 4})}},
                 {.name = "on_input", .inputs = {f64({2, 2, 4, 12}), f64({2, 2, 4})}, .attrs = {{"on_input", 1}}}},
};

const OpDef weighted_swiglu_rows_backward{
    .name = "weighted_swiglu_rows_backward",
    .contract = "As weighted_swiglu_backward.",
    .operands = "dy[a c n f], x[a c n g], weights[a c n] -> dx[a c n g], dweights[a c n]",
    .attrs = {"on_input"},
    .shape = [](const Attrs&, auto in) -> TensorTypes {
      return {in[1], in[2]};
    },
    .rows = {"a", "c", "n", "dy:S(f) x:S(g) weights:R -> dx:S(g) dweights:P"},
    .cost = streaming_cost(9),
    .alias = {{.output = 0, .input = 1}},
    .examples = {{.name = "two_groups", .inputs = {f64({2, 2, 4, 6}), f64({2, 2, 4, 12}), f64({2, 2, 4})}},
                 {.name = "on_input",
                  .inputs = {f64({2, 2, 4, 6}), f64({2, 2, 4, 12}), f64({2, 2, 4})},
                  .attrs = {{"on_input", 1}}}},
};

}  // namespace sextant::ops
