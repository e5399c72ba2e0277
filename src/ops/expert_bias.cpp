// The biases of experts (gpt-oss), beside the linears of expert_linear.cpp: a bias holds those of all experts one
// behind the other, [experts·o].
//   expert_up_bias    y of slot (t, j) = x + bias[experts[t, j]]
//   expert_down_bias  y[t] = x[t] + Σ_j weights[t, j]·bias[experts[t, j]]: the routing weight is of the expert's whole
//                     output, and the linear in front has it in its input already
//
// No row along k: a rank would hold slots of a token whose experts another knows.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

const OpDef expert_up_bias{
    .name = "expert_up_bias",
    .contract = "y of slot (t, j) = x + bias[e] with e = experts[t, j].",
    .operands = "x[b n o], bias[g], experts[b s k] -> y[b n o]",
    .attrs = {"experts"},
    .rows = {"x:S(b) bias:R experts:S(b) -> y:S(b)", "x:S(n) bias:R experts:S(s) -> y:S(n)",
             "x:S(o) bias:S(g) experts:R -> y:S(o)"},
    .backward =
        [](BackwardScope& s) {
          ValueId dy = s.output_gradient(0);
          if (s.needs_gradient(0)) s.pass(0, dy);
          if (s.needs_gradient(1))
            s.emit({expert_up_bias_gradient, {dy, s.input(2)}, {1}, s.op().attrs, Phase::weight_gradient});
        },
    .cost = streaming_cost(1),
    .alias = {{.output = 0, .input = 0}},
    .examples = {{.name = "two_of_four",
                  .inputs = {f64({2, 8, 12}), f64({4 * 12}), i32({2, 4, 2})},
                  .attrs = {{"experts", 4}},
                  .integers_below = 4}},
};

const OpDef expert_up_bias_gradient{
    .name = "expert_up_bias_gradient",
    .contract = "dbias[e] = Σ of dy over the slots of expert e.",
    .operands = "dy[b n o], experts[b s k] -> dbias[g]",
    .attrs = {"experts"},
    .shape = [](const Attrs& attrs, auto in) -> TensorTypes {
      return {{in[0].dtype, {attrs.integer("experts") * in[0].shape[2]}}};
    },
    .wide = {0},
    .rows = {"dy:S(b) experts:S(b) -> dbias:P", "dy:S(n) experts:S(s) -> dbias:P", "dy:S(o) experts:R -> dbias:S(g)"},
    .cost = streaming_cost(0),
    .examples = {{.name = "two_of_four",
                  .inputs = {f64({2, 8, 12}), i32({2, 4, 2})},
                  .attrs = {{"experts", 4}},
                  .integers_below = 4}},
};

const OpDef expert_down_bias{
    .name = "expert_down_bias",
    .contract = "y[t] = x[t] + Σ_j weights[t, j]·bias[e] with e = experts[t, j].",
    .operands = "x[b s o], bias[g], weights[b s k], experts[b s k] -> y[b s o]",
    .attrs = {"experts"},
    .rows = {"x:S(b) bias:R weights:S(b) experts:S(b) -> y:S(b)", "x:S(s) bias:R weights:S(s) experts:S(s) -> y:S(s)",
             "x:S(o) bias:S(g) weights:R experts:R -> y:S(o)", "x:P bias:P weights:R experts:R -> y:P"},
    .backward =
        [](BackwardScope& s) {
          ValueId dy = s.output_gradient(0);
          if (s.needs_gradient(0)) s.pass(0, dy);
          s.emit({expert_down_bias_gradient, {dy, s.input(1), s.input(2), s.input(3)}, {1, 2}, s.op().attrs});
        },
    .cost = streaming_cost(2),
    .alias = {{.output = 0, .input = 0}},
    .examples = {{.name = "two_of_four",
                  .inputs = {f64({2, 4, 12}), f64({4 * 12}), f64({2, 4, 2}), i32({2, 4, 2})},
                  .attrs = {{"experts", 4}},
                  .integers_below = 4}},
};

const OpDef expert_down_bias_gradient{
    .name = "expert_down_bias_gradient",
    .contract =
        "dbias[e] = Σ of weights[t, j]·dy[t] over the slots (t, j) of expert e; dweights[t, j] = Σ "
        "dy[t]·bias[experts[t, j]].",
    .operands = "dy[b s o], bias[g], weights[b s k], experts[b s k] -> dbias[g], dweights[b s k]",
    .attrs = {"experts"},
    .shape = [](const Attrs&, auto in) -> TensorTypes {
      return {{in[0].dtype, in[1].shape}, in[2]};
    },
    .wide = {0},
    .rows = {"dy:S(b) bias:R weights:S(b) experts:S(b) -> dbias:P dweights:S(b)",
             "dy:S(s) bias:R weights:S(s) experts:S(s) -> dbias:P dweights:S(s)",
             "dy:S(o) bias:S(g) weights:R experts:R -> dbias:S(g) dweights:P",
             "dy:R bias:P weights:R experts:R -> dbias:R dweights:P"},
    .cost = streaming_cost(2),
    .examples = {{.name = "two_of_four",
                  .inputs = {f64({2, 4, 12}), f64({4 * 12}), f64({2, 4, 2}), i32({2, 4, 2})},
                  .attrs = {{"experts", 4}},
                  .integers_below = 4}},
};

}  // namespace sextant::ops
