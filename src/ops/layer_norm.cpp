// layer_norm: y = (x − m)·r·w + c with m, r the mean and inverse deviation of each row; c may be left out. Saves x, w,
// m and r. In backward, bias=0 says that there is none. No row along h: mean and deviation are those of the whole row.
//
// add_layer_norm, `plus` and `amax`: see rms_norm.cpp; backward has no amax, which would take registers that its kernel
// on a GPU does not have.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

const OpDef layer_norm{
    .name = "layer_norm",
    .contract = "y = (x − m)·r·w + bias, r = 1/sqrt(var(x) + eps), row by row.",
    .operands = "x[b s h], w[h], bias?[h] -> y[b s h], m[b s], r[b s], amax?[]",
    .attrs = {"amax", "eps"},
    .wide = {1, 2, 3},
    .rows = {"b", "s"},
    .without_letter = kPartialMax,
    .backward =
        [](BackwardScope& s) {
          std::vector<ValueId> inputs{s.output_gradient(0), s.input(0), s.input(1), s.output(1), s.output(2)};
          if (s.input_count() == 3)
            s.emit({layer_norm_backward, std::move(inputs), {0, 1, 2}});
          else
            s.emit({layer_norm_backward, std::move(inputs), {0, 1}, {{"bias", 0}}});
        },
    .cost = streaming_cost(7),
    .recompute = Recompute::first,
    // PyTorch's own is one kernel, and two backward.
    .passes = {.compiled = {1.2, 1}, .jit = {1, 1}, .eager = {1.1, 1}},
    .examples = {{.name = "small", .inputs = {f64({2, 4, 8}), f64({8}), f64({8})}, .attrs = {{"eps", 1e-5}}},
                 {.name = "no_bias", .inputs = {f64({2, 4, 8}), f64({8})}, .attrs = {{"eps", 1e-5}}},
                 {.name = "amax", .inputs = {f64({2, 4, 8}), f64({8})}, .attrs = {{"amax", 1}, {"eps", 1e-5}}}},
};

const OpDef add_layer_norm{
    .name = "add_layer_norm",
    .contract = "sum = a + c; y = (sum − m)·r·w + bias, r = 1/sqrt(var(sum) + eps), row by row.",
    .operands = "a[b s h], c[b s h], w[h], bias?[h] -> sum[b s h], y[b s h], m[b s], r[b s], amax?[]",
    .attrs = {"amax", "eps"},
    .wide = {2, 3, 4},
    .rows = {"b", "s"},
    .without_letter = kPartialMax,
    .cost = streaming_cost(8),
    .alias = {{.output = 0, .input = 0}, {.output = 0, .input = 1}},
    .examples =
        {{.name = "small", .inputs = {f64({2, 4, 8}), f64({2, 4, 8}), f64({8}), f64({8})}, .attrs = {{"eps", 1e-5}}},
         {.name = "no_bias", .inputs = {f64({2, 4, 8}), f64({2, 4, 8}), f64({8})}, .attrs = {{"eps", 1e-5}}},
         {.name = "amax", .inputs = {f64({2, 4, 8}), f64({2, 4, 8}), f64({8})}, .attrs = {{"amax", 1}, {"eps", 1e-5}}}},
};

const OpDef layer_norm_backward{
    .name = "layer_norm_backward",
    .contract = "With n = (x−m)·r, g = dy·w: dx = r·(g − mean(g) − n·mean(g·n)) (+ plus); dw = Σ dy·n; dbias = Σ dy.",
    .operands = "dy[b s h], x[b s h], w[h], m[b s], r[b s], plus?[b s h] -> dx[b s h], dw[h], dbias?[h]",
    .attrs = {"bias"},
    .shape = [](const Attrs& attrs, auto in) -> TensorTypes {
      TensorTypes types{in[1], in[2]};
      if (attrs.integer_or("bias", 1) != 0) types.push_back({wide_of(in[2].dtype), in[2].shape});
      return types;
    },
    .wide = {1},
    .rows = {"b", "s"},
    .cost = streaming_cost(13),
    .alias = {{.output = 0, .input = 0}, {.output = 0, .input = 5}},
    .passes = {.compiled = {1.8, 2}, .jit = {1.5, 2}, .eager = {1.6, 2}},
    .examples = {{.name = "small", .inputs = {f64({2, 4, 8}), f64({2, 4, 8}), f64({8}), f64({2, 4}), f64({2, 4})}},
                 {.name = "plus",
                  .inputs = {f64({2, 4, 8}), f64({2, 4, 8}), f64({8}), f64({2, 4}), f64({2, 4}), f64({2, 4, 8})}},
                 {.name = "no_bias",
                  .inputs = {f64({2, 4, 8}), f64({2, 4, 8}), f64({8}), f64({2, 4}), f64({2, 4})},
                  .attrs = {{"bias", 0}}}},
};

}  // namespace sextant::ops
