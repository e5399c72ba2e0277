// expert_rows: the linear of experts for rows that dispatch brought to them (dispatch.cpp): each row has one expert, or
// none and is 0. A weight holds the matrices of all experts one below the other, [experts·o, i]; experts and n are cut
// into as many blocks, and a row's expert is one of its block: its number there is the given one modulo their count, so
// a rank that holds a block alone needs not know which.
//
// The rows of an expert are added up in the order of their places in queues, or, with by_token, in that of tokens,
// which the numbers of experts then tell (token_copies.cpp).
//
// Along g the weight's layout has a segment per expert (or two, gate|up): whole segments go to the ranks of a block,
// parts of every one to ranks that share experts.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

namespace {

double last_extent(const TensorType& type) {
  return static_cast<double>(type.shape.last());
}

// The experts whose matrices, or parts of them, a weight holds here: a matrix has a row for each element of `rows`.
double experts_in(const TensorType& weight, const TensorType& rows) {
  return static_cast<double>(weight.shape[0]) / last_extent(rows);
}

// Rows that are expected to have an expert: the capacity leaves some empty, which kernels pass over.
double filled_rows(const Attrs& attrs, const TensorType& experts) {
  return static_cast<double>(experts.shape.count()) * attrs.real("filled");
}

// A GEMM for each expert, of the rows that it gets where all get as many. `across`: what has a matrix's rows along its
// last dim, y forward and dy backward.
Cost filled_rows_cost(const Attrs& attrs, const TensorType& across, std::span<const TensorType> in,
                      std::span<const TensorType> out) {
  double count = experts_in(in[1], across);
  return gemms_cost({{.rows = filled_rows(attrs, in[2]) / count,
                      .columns = last_extent(out[0]),
                      .depth = last_extent(in[0]),
                      .count = count}},
                    in, out);
}

}  // namespace

const OpDef expert_rows{
    .name = "expert_rows",
    .contract = "y of a row = x·w[e]ᵀ with e the row's expert in its block; 0 where it has none.",
    .operands = "x[a c n i], w[g i], experts[a c n] -> y[a c n o]",
    .attrs = {"experts", "blocks", "filled", "by_token"},
    .shape = [](const Attrs& attrs, auto in) -> TensorTypes {
      const GlobalShape& rows = in[2].shape;
      return {{in[0].dtype, {rows[0], rows[1], rows[2], in[1].shape[0] / attrs.integer("experts")}}};
    },
    .rows = {"a", "c", "x:S(n) w:B(g) experts:S(n) -> y:S(n)", "x:R w:S(g) experts:R -> y:S(o)",
             "x:S(i) w:S(i) experts:R -> y:P"},
    .backward =
        [](BackwardScope& s) {
          ValueId dy = s.output_gradient(0);
          if (s.needs_gradient(0))
            s.emit({expert_rows_input_gradient, {dy, s.input(1), s.input(2)}, {0}, s.op().attrs});
          if (s.needs_gradient(1))
            s.emit(
                {expert_rows_weight_gradient, {dy, s.input(0), s.input(2)}, {1}, s.op().attrs, Phase::weight_gradient});
        },
    .cost = [](const Attrs& attrs, auto in, auto out) { return filled_rows_cost(attrs, out[0], in, out); },
    .examples = {{.name = "one_expert_each",
                  .inputs = {f64({2, 2, 4, 12}), f64({4 * 12, 12}), i32({2, 2, 4})},
                  .attrs = {{"experts", 4}, {"blocks", 4}, {"filled", 1.0}},
                  .integers_below = 4},
                 {.name = "four_experts",
                  .inputs = {f64({2, 2, 6, 8}), f64({4 * 4, 8}), i32({2, 2, 6})},
                  .attrs = {{"experts", 4}, {"blocks", 2}, {"filled", 0.5}},
                  .integers_below = 4}},
};

const OpDef expert_rows_input_gradient{
    .name = "expert_rows_input_gradient",
    .contract = "dx of a row = dy·w[e]; 0 where it has no expert.",
    .operands = "dy[a c n o], w[g i], experts[a c n] -> dx[a c n i]",
    .attrs = {"experts", "blocks", "filled", "by_token"},
    .shape = [](const Attrs&, auto in) -> TensorTypes {
      const GlobalShape& rows = in[2].shape;
      return {{in[0].dtype, {rows[0], rows[1], rows[2], in[1].shape[1]}}};
    },
    .rows = {"a", "c", "dy:S(n) w:B(g) experts:S(n) -> dx:S(n)", "dy:S(o) w:S(g) experts:R -> dx:P",
             "dy:R w:S(i) experts:R -> dx:S(i)"},
    .cost = [](const Attrs& attrs, auto in, auto out) { return filled_rows_cost(attrs, in[0], in, out); },
    .examples = {{.name = "four_experts",
                  .inputs = {f64({2, 2, 6, 4}), f64({4 * 4, 8}), i32({2, 2, 6})},
                  .attrs = {{"experts", 4}, {"blocks", 2}, {"filled", 0.5}},
                  .integers_below = 4}},
};

const OpDef expert_rows_weight_gradient{
    .name = "expert_rows_weight_gradient",
    .contract = "dw[e] = Σ dyᵀ·x over the rows of expert e.",
    .operands = "dy[a c n o], x[a c n i], experts[a c n] -> dw[g i]",
    .attrs = {"experts", "blocks", "filled", "by_token"},
    .shape = [](const Attrs& attrs, auto in) -> TensorTypes {
      return {{in[0].dtype, {attrs.integer("experts") * in[0].shape[3], in[1].shape[3]}}};
    },
    .wide = {0},
    .rows = {"a", "c", "dy:S(n) x:S(n) experts:S(n) -> dw:B(g)", "dy:S(o) x:R experts:R -> dw:S(g)",
             "dy:R x:S(i) experts:R -> dw:S(i)"},
    .cost =
        [](const Attrs& attrs, auto in, auto out) {
          double count = experts_in(out[0], in[0]);
          return gemms_cost({{.rows = last_extent(in[0]),
                              .columns = last_extent(in[1]),
                              .depth = filled_rows(attrs, in[2]) / count,
                              .count = count}},
                            in, out);
        },
    .accumulate = Accumulate::supported,
    .examples = {{.name = "four_experts",
                  .inputs = {f64({2, 2, 6, 4}), f64({2, 2, 6, 8}), i32({2, 2, 6})},
                  .attrs = {{"experts", 4}, {"blocks", 2}, {"filled", 0.5}},
                  .integers_below = 4}},
};

}  // namespace sextant::ops
