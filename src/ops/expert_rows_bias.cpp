// The biases of experts (gpt-oss) for rows that dispatch brought to them, beside the linear of expert_rows.cpp, where
// it is said which expert of a block a row has. A bias holds those of all experts one behind the other, [experts·o].
//   expert_rows_bias           y of a row = x + bias[e]
//   expert_rows_weighted_bias  y of a row = x + weight·bias[e]: the routing weight is of the expert's whole output, and
//                              the linear in front has it in its input already
// The gradient of a bias adds up rows in the order in which those of the linears' weights do, so that it goes on from
// one round to the next with the bits of one round.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

const OpDef expert_rows_bias{
    .name = "expert_rows_bias",
    .contract = "y of a row = x + bias[e] with e the row's expert in its block; x where it has none.",
    .operands = "x[a c n o], bias[g], experts[a c n] -> y[a c n o]",
    .attrs = {"experts", "blocks", "by_token"},
    .rows = {"a", "c", "x:S(n) bias:B(g) experts:S(n) -> y:S(n)", "x:S(o) bias:S(g) experts:R -> y:S(o)"},
    .backward =
        [](BackwardScope& s) {
          ValueId dy = s.output_gradient(0);
          if (s.needs_gradient(0)) s.pass(0, dy);
          if (s.needs_gradient(1))
            s.emit({expert_rows_bias_gradient, {dy, s.input(2)}, {1}, s.op().attrs, Phase::weight_gradient});
        },
    .cost = streaming_cost(1),
    .alias = {{.output = 0, .input = 0}},
    .examples = {{.name = "four_experts",
                  .inputs = {f64({2, 2, 6, 12}), f64({4 * 12}), i32({2, 2, 6})},
                  .attrs = {{"experts", 4}, {"blocks", 2}},
                  .integers_below = 4}},
};

const OpDef expert_rows_bias_gradient{
    .name = "expert_rows_bias_gradient",
    .contract = "dbias[e] = Σ of dy over the rows of expert e.",
    .operands = "dy[a c n o], experts[a c n] -> dbias[g]",
    .attrs = {"experts", "blocks", "by_token"},
    .shape = [](const Attrs& attrs, auto in) -> TensorTypes {
      return {{in[0].dtype, {attrs.integer("experts") * in[0].shape[3]}}};
    },
    .wide = {0},
    .rows = {"a", "c", "dy:S(n) experts:S(n) -> dbias:B(g)", "dy:S(o) experts:R -> dbias:S(g)"},
    .cost = streaming_cost(1),
    .accumulate = Accumulate::supported,
    .examples = {{.name = "four_experts",
                  .inputs = {f64({2, 2, 6, 12}), i32({2, 2, 6})},
                  .attrs = {{"experts", 4}, {"blocks", 2}},
                  .integers_below = 4}},
};

const OpDef expert_rows_weighted_bias{
    .name = "expert_rows_weighted_bias",
    .contract = "y of a row = x + weight·bias[e] with e the row's expert in its block; x where it has none.",
    .operands = "x[a c n o], bias[g], weights[a c n], experts[a c n] -> y[a c n o]",
    .attrs = {"experts", "blocks", "by_token"},
    .rows = {"a", "c", "x:S(n) bias:B(g) weights:S(n) experts:S(n) -> y:S(n)",
             "x:S(o) bias:S(g) weights:R experts:R -> y:S(o)", "x:P bias:P weights:R experts:R -> y:P"},
    .backward =
        [](BackwardScope& s) {
          ValueId dy = s.output_gradient(0);
          if (s.needs_gradient(0)) s.pass(0, dy);
          s.emit({expert_rows_weighted_bias_gradient, {dy, s.input(1), s.input(2), s.input(3)}, {1, 2}, s.op().attrs});
        },
    .cost = streaming_cost(2),
    .alias = {{.output = 0, .input = 0}},
    // Op by op (Megatron-Core's _apply_bias): the product and the sum in f32, joined, cast; backward, both gradients of
    // the product as products and sums in f32.
    .passes = {.eager = {7, 4}},
    .examples = {{.name = "four_experts",
                  .inputs = {f64({2, 2, 6, 12}), f64({4 * 12}), f64({2, 2, 6}), i32({2, 2, 6})},
                  .attrs = {{"experts", 4}, {"blocks", 2}},
                  .integers_below = 4}},
};

const OpDef expert_rows_weighted_bias_gradient{
    .name = "expert_rows_weighted_bias_gradient",
    .contract = "dbias[e] = Σ of weight·dy over the rows of expert e; dweight of a row = Σ dy·bias[e].",
    .operands = "dy[a c n o], bias[g], weights[a c n], experts[a c n] -> dbias[g], dweights[a c n]",
    .attrs = {"experts", "blocks", "by_token"},
    .shape = [](const Attrs&, auto in) -> TensorTypes {
      return {{in[0].dtype, in[1].shape}, in[2]};
    },
    .wide = {0},
    .rows = {"a", "c", "dy:S(n) bias:B(g) weights:S(n) experts:S(n) -> dbias:B(g) dweights:S(n)",
             "dy:S(o) bias:S(g) weights:R experts:R -> dbias:S(g) dweights:P",
             "dy:R bias:P weights:R experts:R -> dbias:R dweights:P"},
    .cost = streaming_cost(2),
    .accumulate = Accumulate::supported,
    .passes = {.eager = {20, 8}},
    .examples = {{.name = "four_experts",
                  .inputs = {f64({2, 2, 6, 12}), f64({4 * 12}), f64({2, 2, 6}), i32({2, 2, 6})},
                  .attrs = {{"experts", 4}, {"blocks", 2}},
                  .integers_below = 4}},
};

}  // namespace sextant::ops
