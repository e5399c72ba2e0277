// weighted_clamped_swiglu: what gpt-oss has in place of weighted_swiglu. A row is pairs of gate and up, g0 u0 g1 u1 …;
// gate is cut off above `limit`, up above it and below its negative, and 1 is added to up:
//   y = weight·(clamp(up) + 1)·g·sigmoid(alpha·g) with g = min(gate, limit)
// Where a value is cut off, no gradient reaches it.
//
// weighted_clamped_swiglu_rows is the same for rows that dispatch brought to their experts (dispatch.cpp), which have a
// weight each.
//
// No row along k: slots are split with their tokens.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

const OpDef weighted_clamped_swiglu{
    .name = "weighted_clamped_swiglu",
    .contract =
        "y of slot (t, j) = weights[t, j]·(clamp(up, ±limit) + 1)·g·sigmoid(alpha·g) with g = min(gate, limit) and x "
        "= pairs gate, up.",
    .operands = "x[b n p], weights[b s k] -> y[b n f]",
    .attrs = {"limit", "alpha"},
    .shape = [](const Attrs&, auto in) -> TensorTypes {
      return {{in[0].dtype, {in[0].shape[0], in[0].shape[1], in[0].shape[2] / 2}}};
    },
    .rows = {"x:S(b) weights:S(b) -> y:S(b)", "x:S(n) weights:S(s) -> y:S(n)", "x:S(p) weights:R -> y:S(f)"},
    .backward =
        [](BackwardScope& s) {
          s.emit(
              {weighted_clamped_swiglu_backward, {s.output_gradient(0), s.input(0), s.input(1)}, {0, 1}, s.op().attrs});
        },
    .cost = streaming_cost(9),
    .examples = {{.name = "two_slots",
                  .inputs = {f64({2, 8, 24}), f64({2, 4, 2})},
                  .attrs = {{"limit", 0.7}, {"alpha", 1.702}}},
                 {.name = "wide_limit",
                  .inputs = {f64({3, 12, 8}), f64({3, 12, 1})},
                  .attrs = {{"limit", 7.0}, {"alpha", 1.702}}}},
};

const OpDef weighted_clamped_swiglu_backward{
    .name = "weighted_clamped_swiglu_backward",
    .contract = "dx, 0 where gate or up was cut off, and dweights = Σ dy·y / weight, of weighted_clamped_swiglu.",
    .operands = "dy[b n f], x[b n p], weights[b s k] -> dx[b n p], dweights[b s k]",
    .attrs = {"limit", "alpha"},
    .shape = [](const Attrs&, auto in) -> TensorTypes {
      return {in[1], in[2]};
    },
    .rows = {"dy:S(b) x:S(b) weights:S(b) -> dx:S(b) dweights:S(b)",
             "dy:S(n) x:S(n) weights:S(s) -> dx:S(n) dweights:S(s)", "dy:S(f) x:S(p) weights:R -> dx:S(p) dweights:P"},
    .cost = streaming_cost(12),
    .alias = {{.output = 0, .input = 1}},
    .examples = {{.name = "two_slots",
                  .inputs = {f64({2, 8, 12}), f64({2, 8, 24}), f64({2, 4, 2})},
                  .attrs = {{"limit", 0.7}, {"alpha", 1.702}}}},
};

const OpDef weighted_clamped_swiglu_rows{
    .name = "weighted_clamped_swiglu_rows",
    .contract = "As weighted_clamped_swiglu, each row times its weight.",
    .operands = "x[a c n p], weights[a c n] -> y[a c n f]",
    .attrs = {"limit", "alpha"},
    .shape = [](const Attrs&, auto in) -> TensorTypes {
      const GlobalShape& x = in[0].shape;
      return {{in[0].dtype, {x[0], x[1], x[2], x[3] / 2}}};
    },
    .rows = {"a", "c", "n", "x:S(p) weights:R -> y:S(f)"},
    .backward =
        [](BackwardScope& s) {
          s.emit({weighted_clamped_swiglu_rows_backward,
                  {s.output_gradient(0), s.input(0), s.input(1)},
                  {0, 1},
                  s.op().attrs});
        },
    .cost = streaming_cost(9),
    .examples = {{.name = "two_groups",
                  .inputs = {f64({2, 2, 4, 24}), f64({2, 2, 4})},
                  .attrs = {{"limit", 0.7}, {"alpha", 1.702}}}},
};

const OpDef weighted_clamped_swiglu_rows_backward{
    .name = "weighted_clamped_swiglu_rows_backward",
    .contract = "As weighted_clamped_swiglu_backward.",
    .operands = "dy[a c n f], x[a c n p], weights[a c n] -> dx[a c n p], dweights[a c n]",
    .attrs = {"limit", "alpha"},
    .shape = [](const Attrs&, auto in) -> TensorTypes {
      return {in[1], in[2]};
    },
    .rows = {"a", "c", "n", "dy:S(f) x:S(p) weights:R -> dx:S(p) dweights:P"},
    .cost = streaming_cost(12),
    .alias = {{.output = 0, .input = 1}},
    .examples = {{.name = "two_groups",
                  .inputs = {f64({2, 2, 4, 12}), f64({2, 2, 4, 24}), f64({2, 2, 4})},
                  .attrs = {{"limit", 0.7}, {"alpha", 1.702}}}},
};

}  // namespace sextant::ops
