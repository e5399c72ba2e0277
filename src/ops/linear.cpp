// linear: y[b,s,o] = Σ_i x[b,s,i]·w[o,i] (+ bias[o]). Saves x and w. Its gradients are three ops, so that weight
// gradients can be deferred: dx = dy·w, dw = dyᵀ·x, dbias = Σ_{b,s} dy.
//
// linear_gelu and linear_gelu_gradient are what passes/fuse makes of a linear followed by gelu, and of their gradients,
// where the target's GEMM can do the gelu while it writes; linear_gradients is what it makes of the gradients of a
// weight and its bias, which both read dy. No row along i for linear_gelu and no row along o for its gradient: gelu is
// not linear, so the sum must be whole. No row along i for linear_gradients either: every part would add the bias's
// gradient.
//
// linear_wide is a linear whose sums stay in f32 where its operands are 16-bit floats: the logits of a router, by which
// experts are chosen.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

namespace {

// One GEMM among three sizes: rows of the tokens, width of x, width of y. What is summed over differs.
struct Sizes {
  double tokens, inputs, outputs;
};

Sizes sizes_of(const GlobalShape& x, const GlobalShape& y) {
  return {static_cast<double>(x.rows()), static_cast<double>(x.last()), static_cast<double>(y.last())};
}

Cost forward_cost(std::span<const TensorType> in, std::span<const TensorType> out, const Sizes& n) {
  return gemms_cost({{.rows = n.tokens, .columns = n.outputs, .depth = n.inputs}}, in, out);
}

Cost input_gradient_cost(std::span<const TensorType> in, std::span<const TensorType> out, const Sizes& n) {
  return gemms_cost({{.rows = n.tokens, .columns = n.inputs, .depth = n.outputs}}, in, out);
}

Cost weight_gradient_cost(std::span<const TensorType> in, std::span<const TensorType> out, const Sizes& n) {
  return gemms_cost({{.rows = n.outputs, .columns = n.inputs, .depth = n.tokens}}, in, out);
}

}  // namespace

const OpDef linear{
    .name = "linear",
    .contract = "y = x·wᵀ (+ bias), over the last dim of x.",
    .operands = "x[b s i], w[o i], bias?[o] -> y[b s o]",
    .rows = {"b", "s", "o", "x:S(i) w:S(i) bias:P -> y:P"},
    .backward =
        [](BackwardScope& s) {
          ValueId dy = s.output_gradient(0);
          if (s.needs_gradient(0)) s.emit({linear_input_gradient, {dy, s.input(1)}, {0}});
          if (s.needs_gradient(1)) s.emit({linear_weight_gradient, {dy, s.input(0)}, {1}, {}, Phase::weight_gradient});
          if (s.input_count() == 3 && s.needs_gradient(2))
            s.emit({linear_bias_gradient, {dy}, {2}, {}, Phase::weight_gradient});
        },
    .cost = [](const Attrs&, auto in, auto out) { return forward_cost(in, out, sizes_of(in[0].shape, out[0].shape)); },
    .examples = {{.name = "plain", .inputs = {f64({2, 3, 4}), f64({6, 4})}},
                 {.name = "bias", .inputs = {f64({2, 4, 6}), f64({8, 6}), f64({8})}},
                 {.name = "one_row", .inputs = {f64({1, 1, 7}), f64({5, 7})}}},
};

const OpDef linear_gelu{
    .name = "linear_gelu",
    .contract = "pre = x·wᵀ (+ bias); y = gelu(pre), in its tanh form.",
    .operands = "x[b s i], w[o i], bias?[o] -> y[b s o], pre[b s o]",
    .rows = {"b", "s", "o"},
    .cost = [](const Attrs&, auto in, auto out) { return forward_cost(in, out, sizes_of(in[0].shape, out[0].shape)); },
    .examples = {{.name = "plain", .inputs = {f64({2, 3, 4}), f64({6, 4})}},
                 {.name = "bias", .inputs = {f64({2, 4, 6}), f64({8, 6}), f64({8})}}},
};

const OpDef linear_gelu_gradient{
    .name = "linear_gelu_gradient",
    .contract = "dpre = (dy·w)·gelu'(pre).",
    .operands = "dy[b s o], w[o i], pre[b s i] -> dpre[b s i]",
    .rows = {"b", "s", "i"},
    .cost = [](const Attrs&, auto in,
               auto out) { return input_gradient_cost(in, out, sizes_of(out[0].shape, in[0].shape)); },
    .examples = {{.name = "plain", .inputs = {f64({2, 3, 6}), f64({6, 4}), f64({2, 3, 4})}}},
};

const OpDef linear_input_gradient{
    .name = "linear_input_gradient",
    .contract = "dx = dy·w.",
    .operands = "dy[b s o], w[o i] -> dx[b s i]",
    .rows = {"b", "s", "i", "o"},
    .cost = [](const Attrs&, auto in,
               auto out) { return input_gradient_cost(in, out, sizes_of(out[0].shape, in[0].shape)); },
    .examples = {{.name = "plain", .inputs = {f64({2, 3, 6}), f64({6, 4})}}},
};

const OpDef linear_weight_gradient{
    .name = "linear_weight_gradient",
    .contract = "dw = dyᵀ·x, summed over all rows.",
    .operands = "dy[b s o], x[b s i] -> dw[o i]",
    .wide = {0},
    .rows = {"b", "s", "o", "i"},
    .cost = [](const Attrs&, auto in,
               auto out) { return weight_gradient_cost(in, out, sizes_of(in[1].shape, in[0].shape)); },
    .accumulate = Accumulate::supported,
    .examples = {{.name = "plain", .inputs = {f64({2, 3, 6}), f64({2, 3, 4})}}},
};

const OpDef linear_bias_gradient{
    .name = "linear_bias_gradient",
    .contract = "dbias = dy summed over all rows.",
    .operands = "dy[b s o] -> dbias[o]",
    .wide = {0},
    .rows = {"b", "s", "o"},
    .cost =
        [](const Attrs& a, auto in, auto out) {
          Cost cost = streaming_cost(0)(a, in, out);
          cost.flops = {static_cast<double>(in[0].shape.count())};
          return cost;
        },
    .accumulate = Accumulate::supported,
    .examples = {{.name = "plain", .inputs = {f64({2, 3, 6})}}},
};

const OpDef linear_gradients{
    .name = "linear_gradients",
    .contract = "dw = dw0 + dyᵀ·x; dbias = dbias0 + Σ dy; each written over what it is added to.",
    .operands = "dy[b s o], x[b s i], dw0[o i], dbias0[o] -> dw[o i], dbias[o]",
    .shape = [](const Attrs&, auto in) -> TensorTypes {
      return {in[2], in[3]};
    },
    .rows = {"o", "dy:S(b) x:S(b) dw0:P dbias0:P -> dw:P dbias:P", "dy:S(s) x:S(s) dw0:P dbias0:P -> dw:P dbias:P"},
    .cost = [](const Attrs&, auto in,
               auto out) { return weight_gradient_cost(in.first(2), out, sizes_of(in[1].shape, in[0].shape)); },
    .alias = {{.output = 0, .input = 2, .rule = Alias::Rule::must},
              {.output = 1, .input = 3, .rule = Alias::Rule::must}},
    .recompute = Recompute::never,
    .examples = {{.name = "plain", .inputs = {f64({2, 3, 6}), f64({2, 3, 4}), f64({6, 4}), f64({6})}}},
};

const OpDef linear_wide{
    .name = "linear_wide",
    .contract = "y = x·wᵀ, kept in f32.",
    .operands = "x[b s i], w[o i] -> y[b s o]",
    .wide = {0},
    .rows = {"b", "s", "o", "i"},
    .backward =
        [](BackwardScope& s) {
          ValueId dy = s.output_gradient(0);
          if (s.needs_gradient(0)) s.emit({linear_wide_input_gradient, {dy, s.input(1)}, {0}});
          if (s.needs_gradient(1))
            s.emit({linear_wide_weight_gradient, {dy, s.input(0)}, {1}, {}, Phase::weight_gradient});
        },
    .cost = [](const Attrs&, auto in, auto out) { return forward_cost(in, out, sizes_of(in[0].shape, out[0].shape)); },
    .examples = {{.name = "plain", .inputs = {f64({2, 3, 4}), f64({6, 4})}},
                 {.name = "wider", .inputs = {f64({2, 4, 12}), f64({8, 12})}}},
};

const OpDef linear_wide_input_gradient{
    .name = "linear_wide_input_gradient",
    .contract = "dx = dy·w, of the type of w.",
    .operands = "dy[b s o], w[o i] -> dx[b s i]",
    .shape = [](const Attrs&, auto in) -> TensorTypes {
      return {{in[1].dtype, {in[0].shape[0], in[0].shape[1], in[1].shape[1]}}};
    },
    .rows = {"b", "s", "i", "o"},
    .cost = [](const Attrs&, auto in,
               auto out) { return input_gradient_cost(in, out, sizes_of(out[0].shape, in[0].shape)); },
    .examples = {{.name = "plain", .inputs = {f64({2, 3, 6}), f64({6, 4})}}},
};

const OpDef linear_wide_weight_gradient{
    .name = "linear_wide_weight_gradient",
    .contract = "dw = dyᵀ·x, summed over all rows.",
    .operands = "dy[b s o], x[b s i] -> dw[o i]",
    .wide = {0},
    .rows = {"b", "s", "o", "i"},
    .cost = [](const Attrs&, auto in,
               auto out) { return weight_gradient_cost(in, out, sizes_of(in[1].shape, in[0].shape)); },
    .accumulate = Accumulate::supported,
    .examples = {{.name = "plain", .inputs = {f64({2, 3, 6}), f64({2, 3, 4})}}},
};

}  // namespace sextant::ops
