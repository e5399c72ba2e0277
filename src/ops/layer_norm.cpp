// layer_norm: y = (x − m)·r·w + c with m, r the mean and inverse deviation of each row. Saves x, w, m and r.
// No row along h: mean and deviation are those of the whole row.
//
// add_layer_norm and `plus`: see rms_norm.cpp.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

const OpDef layer_norm{
    .name = "layer_norm",
    .contract = "y = (x − m)·r·w + bias, r = 1/sqrt(var(x) + eps), row by row.",
    .operands = "x[b s h], w[h], bias[h] -> y[b s h], m[b s], r[b s]",
    .attrs = {"eps"},
    .wide = {1, 2},
    .rows = {"b", "s"},
    .backward =
        [](BackwardScope& s) {
          s.emit({layer_norm_backward,
                  {s.output_gradient(0), s.input(0), s.input(1), s.output(1), s.output(2)},
                  {0, 1, 2}});
        },
    .cost = streaming_cost(7),
    .recompute = Recompute::first,
    .examples = {{.name = "small", .inputs = {f64({2, 4, 8}), f64({8}), f64({8})}, .attrs = {{"eps", 1e-5}}}},
};

const OpDef add_layer_norm{
    .name = "add_layer_norm",
    .contract = "sum = a + c; y = (sum − m)·r·w + bias, r = 1/sqrt(var(sum) + eps), row by row.",
    .operands = "a[b s h], c[b s h], w[h], bias[h] -> sum[b s h], y[b s h], m[b s], r[b s]",
    .attrs = {"eps"},
    .wide = {2, 3},
    .rows = {"b", "s"},
    .cost = streaming_cost(8),
    .alias = {{.output = 0, .input = 0}, {.output = 0, .input = 1}},
    .examples = {{.name = "small", .inputs = {f64({2, 4, 8}), f64({2, 4, 8}), f64({8}), f64({8})}, .attrs = {{"eps", 1e-5}}}},
};

const OpDef layer_norm_backward{
    .name = "layer_norm_backward",
    .contract = "With n = (x−m)·r, g = dy·w: dx = r·(g − mean(g) − n·mean(g·n)) (+ plus); dw = Σ dy·n; dbias = Σ dy.",
    .operands = "dy[b s h], x[b s h], w[h], m[b s], r[b s], plus?[b s h] -> dx[b s h], dw[h], dbias[h]",
    .wide = {1, 2},
    .rows = {"b", "s"},
    .cost = streaming_cost(13),
    .alias = {{.output = 0, .input = 0}, {.output = 0, .input = 5}},
    .examples = {{.name = "small", .inputs = {f64({2, 4, 8}), f64({2, 4, 8}), f64({8}), f64({2, 4}), f64({2, 4})}},
                 {.name = "plus",
                  .inputs = {f64({2, 4, 8}), f64({2, 4, 8}), f64({8}), f64({2, 4}), f64({2, 4}), f64({2, 4, 8})}}},
};

}  // namespace sextant::ops
