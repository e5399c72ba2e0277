// expert_up and expert_down: linears whose weights differ from token to token. `experts` names the experts of each
// token; a token and one of its experts make a slot, and the slots of a token stand side by side: values of slots are
// [b n …] with n = s·k. A weight holds the matrices of all experts one below the other, [experts·o, i].
//   expert_up    y of slot (t, j) = x[t]·w[experts[t, j]]ᵀ            tokens in, slots out
//   expert_down  y[t] = Σ_j x of slot (t, j)·w[experts[t, j]]ᵀ        slots in, tokens out
// The gradient of one's input is of the other's form. How slots are brought together by expert, so that each expert's
// is one GEMM, is the kernels' own matter: shapes do not depend on it, so no routing needs more memory than another.
//
// in_order: values of slots stand in the order of experts that `order` (slot_order.cpp) tells; [b n] is then one dim.
//
// No row along k: a rank would hold slots of a token whose experts another knows.
//
// narrow_gradient: the weight's gradient is as narrow as what it is computed from, where nothing is added to it.
//
// Along o the weight's layout has a segment per expert (or two, gate|up), so that each rank holds a part of every one.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

namespace {

int64_t matrix_rows(const Attrs& attrs, const TensorType& weight) {
  return weight.shape[0] / attrs.integer("experts");
}

double width_of(const TensorType& type) {
  return static_cast<double>(type.shape.last());
}

// A GEMM for each expert, of the slots that it gets where all get as many; input 2 tells the number of slots.
double slots_of_each(const Attrs& attrs, const TensorType& experts) {
  return static_cast<double>(experts.shape.count()) / attrs.real("experts");
}

Cost slots_rows_cost(const Attrs& attrs, std::span<const TensorType> in, std::span<const TensorType> out) {
  return gemms_cost({{.rows = slots_of_each(attrs, in[2]),
                      .columns = width_of(out[0]),
                      .depth = width_of(in[0]),
                      .count = attrs.real("experts")}},
                    in, out);
}

Cost slots_weight_cost(const Attrs& attrs, std::span<const TensorType> in, std::span<const TensorType> out) {
  return gemms_cost({{.rows = width_of(in[0]),
                      .columns = width_of(in[1]),
                      .depth = slots_of_each(attrs, in[2]),
                      .count = attrs.real("experts")}},
                    in, out);
}

}  // namespace

const OpDef expert_up{
    .name = "expert_up",
    .contract = "y of slot (t, j) = x[t]·w[e]ᵀ with e = experts[t, j].",
    .operands = "x[b s i], w[g i], experts[b s k], order?[b s p], offsets?[m] -> y[b n o]",
    .attrs = {"experts", "narrow_gradient", "in_order"},
    .shape = [](const Attrs& attrs, auto in) -> TensorTypes {
      const GlobalShape& slots = in[2].shape;
      return {{in[0].dtype, {slots[0], slots[1] * slots[2], matrix_rows(attrs, in[1])}}};
    },
    .rows = {"x:S(b) w:R experts:S(b) -> y:S(b)", "x:S(s) w:R experts:S(s) -> y:S(n)", "x:R w:S(g) experts:R -> y:S(o)",
             "x:S(i) w:S(i) experts:R -> y:P"},
    .backward =
        [](BackwardScope& s) {
          ValueId dy = s.output_gradient(0);
          if (s.needs_gradient(0)) s.emit({expert_up_input_gradient, {dy, s.input(1), s.input(2)}, {0}, s.op().attrs});
          if (s.needs_gradient(1))
            s.emit(
                {expert_up_weight_gradient, {dy, s.input(0), s.input(2)}, {1}, s.op().attrs, Phase::weight_gradient});
        },
    .cost = slots_rows_cost,
    .examples = {{.name = "two_of_four",
                  .inputs = {f64({2, 4, 12}), f64({4 * 12, 12}), i32({2, 4, 2})},
                  .attrs = {{"experts", 4}},
                  .integers_below = 4},
                 {.name = "one_of_three",
                  .inputs = {f64({3, 12, 4}), f64({3 * 4, 4}), i32({3, 12, 1})},
                  .attrs = {{"experts", 3}},
                  .integers_below = 3}},
};

const OpDef expert_up_input_gradient{
    .name = "expert_up_input_gradient",
    .contract = "dx[t] = Σ_j dy of slot (t, j)·w[experts[t, j]].",
    .operands = "dy[b n o], w[g i], experts[b s k], order?[b s p], offsets?[m] -> dx[b s i]",
    .attrs = {"experts", "narrow_gradient", "in_order"},
    .shape = [](const Attrs&, auto in) -> TensorTypes {
      return {{in[0].dtype, {in[2].shape[0], in[2].shape[1], in[1].shape[1]}}};
    },
    .rows = {"dy:S(b) w:R experts:S(b) -> dx:S(b)", "dy:S(n) w:R experts:S(s) -> dx:S(s)",
             "dy:S(o) w:S(g) experts:R -> dx:P", "dy:R w:S(i) experts:R -> dx:S(i)"},
    .cost = slots_rows_cost,
    .examples = {{.name = "two_of_four",
                  .inputs = {f64({2, 8, 12}), f64({4 * 12, 12}), i32({2, 4, 2})},
                  .attrs = {{"experts", 4}},
                  .integers_below = 4}},
};

const OpDef expert_up_weight_gradient{
    .name = "expert_up_weight_gradient",
    .contract = "dw[e] = Σ over the slots (t, j) of expert e of dyᵀ·x[t].",
    .operands = "dy[b n o], x[b s i], experts[b s k], order?[b s p], offsets?[m] -> dw[g i]",
    .attrs = {"experts", "narrow_gradient", "in_order"},
    .shape = [](const Attrs& attrs, auto in) -> TensorTypes {
      return {{in[0].dtype, {attrs.integer("experts") * in[0].shape[2], in[1].shape[2]}}};
    },
    .wide = {0},
    .rows = {"dy:S(b) x:S(b) experts:S(b) -> dw:P", "dy:S(n) x:S(s) experts:S(s) -> dw:P",
             "dy:S(o) x:R experts:R -> dw:S(g)", "dy:R x:S(i) experts:R -> dw:S(i)"},
    .cost = slots_weight_cost,
    .accumulate = Accumulate::supported,
    .examples = {{.name = "two_of_four",
                  .inputs = {f64({2, 8, 12}), f64({2, 4, 12}), i32({2, 4, 2})},
                  .attrs = {{"experts", 4}},
                  .integers_below = 4}},
};

const OpDef expert_down{
    .name = "expert_down",
    .contract = "y[t] = Σ_j x of slot (t, j)·w[e]ᵀ with e = experts[t, j].",
    .operands = "x[b n i], w[g i], experts[b s k], order?[b s p], offsets?[m] -> y[b s o]",
    .attrs = {"experts", "narrow_gradient", "in_order"},
    .shape = [](const Attrs& attrs, auto in) -> TensorTypes {
      return {{in[0].dtype, {in[2].shape[0], in[2].shape[1], matrix_rows(attrs, in[1])}}};
    },
    .rows = {"x:S(b) w:R experts:S(b) -> y:S(b)", "x:S(n) w:R experts:S(s) -> y:S(s)", "x:R w:S(g) experts:R -> y:S(o)",
             "x:S(i) w:S(i) experts:R -> y:P"},
    .backward =
        [](BackwardScope& s) {
          ValueId dy = s.output_gradient(0);
          if (s.needs_gradient(0))
            s.emit({expert_down_input_gradient, {dy, s.input(1), s.input(2)}, {0}, s.op().attrs});
          if (s.needs_gradient(1))
            s.emit(
                {expert_down_weight_gradient, {dy, s.input(0), s.input(2)}, {1}, s.op().attrs, Phase::weight_gradient});
        },
    .cost = slots_rows_cost,
    .examples = {{.name = "two_of_four",
                  .inputs = {f64({2, 8, 12}), f64({4 * 12, 12}), i32({2, 4, 2})},
                  .attrs = {{"experts", 4}},
                  .integers_below = 4},
                 {.name = "one_of_three",
                  .inputs = {f64({3, 12, 4}), f64({3 * 4, 4}), i32({3, 12, 1})},
                  .attrs = {{"experts", 3}},
                  .integers_below = 3}},
};

const OpDef expert_down_input_gradient{
    .name = "expert_down_input_gradient",
    .contract = "dx of slot (t, j) = dy[t]·w[experts[t, j]].",
    .operands = "dy[b s o], w[g i], experts[b s k], order?[b s p], offsets?[m] -> dx[b n i]",
    .attrs = {"experts", "narrow_gradient", "in_order"},
    .shape = [](const Attrs&, auto in) -> TensorTypes {
      const GlobalShape& slots = in[2].shape;
      return {{in[0].dtype, {slots[0], slots[1] * slots[2], in[1].shape[1]}}};
    },
    .rows = {"dy:S(b) w:R experts:S(b) -> dx:S(b)", "dy:S(s) w:R experts:S(s) -> dx:S(n)",
             "dy:S(o) w:S(g) experts:R -> dx:P", "dy:R w:S(i) experts:R -> dx:S(i)"},
    .cost = slots_rows_cost,
    .examples = {{.name = "two_of_four",
                  .inputs = {f64({2, 4, 12}), f64({4 * 12, 12}), i32({2, 4, 2})},
                  .attrs = {{"experts", 4}},
                  .integers_below = 4}},
};

const OpDef expert_down_weight_gradient{
    .name = "expert_down_weight_gradient",
    .contract = "dw[e] = Σ over the slots (t, j) of expert e of dy[t]ᵀ·x.",
    .operands = "dy[b s o], x[b n i], experts[b s k], order?[b s p], offsets?[m] -> dw[g i]",
    .attrs = {"experts", "narrow_gradient", "in_order"},
    .shape = [](const Attrs& attrs, auto in) -> TensorTypes {
      return {{in[0].dtype, {attrs.integer("experts") * in[0].shape[2], in[1].shape[2]}}};
    },
    .wide = {0},
    .rows = {"dy:S(b) x:S(b) experts:S(b) -> dw:P", "dy:S(s) x:S(n) experts:S(s) -> dw:P",
             "dy:S(o) x:R experts:R -> dw:S(g)", "dy:R x:S(i) experts:R -> dw:S(i)"},
    .cost = slots_weight_cost,
    .accumulate = Accumulate::supported,
    .examples = {{.name = "two_of_four",
                  .inputs = {f64({2, 4, 12}), f64({2, 8, 12}), i32({2, 4, 2})},
                  .attrs = {{"experts", 4}},
                  .integers_below = 4}},
};

}  // namespace sextant::ops
