// rms_norm: y = x·r·w with r = 1/√(mean(x²) + eps) over the last dim. Saves x, w and r (one number per row).
// No row along h: the mean is that of the whole row.
//
// add_rms_norm is what passes/fuse makes of an add whose sum is normed: the sum crosses memory once. Backward takes the
// gradient that reaches x by another way (the residual stream) as `plus`, for the same reason. With amax=1 all three
// find the largest magnitude of what they write: absmax of y, or of dx, in the same pass over memory.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

const OpDef rms_norm{
    .name = "rms_norm",
    .contract = "y = x·r·w, r = 1/sqrt(mean(x²) + eps), row by row.",
    .operands = "x[b s h], w[h] -> y[b s h], r[b s], amax?[]",
    .attrs = {"amax", "eps"},
    .wide = {1, 2},
    .rows = {"b", "s"},
    .without_letter = kPartialMax,
    .backward =
        [](BackwardScope& s) {
          s.emit({rms_norm_backward, {s.output_gradient(0), s.input(0), s.input(1), s.output(1)}, {0, 1}});
        },
    .cost = streaming_cost(4),
    .recompute = Recompute::first,
    // Elementary operations: cast to f32, square, average, scale, cast back, apply the weight.
    .passes = {.compiled = {1.2, 1}, .jit = {1, 1}, .eager = {4.5, 6}},
    .examples = {{.name = "small", .inputs = {f64({2, 4, 8}), f64({8})}, .attrs = {{"eps", 1e-5}}},
                 {.name = "odd", .inputs = {f64({1, 3, 7}), f64({7})}, .attrs = {{"eps", 1e-6}}},
                 {.name = "amax", .inputs = {f64({2, 4, 8}), f64({8})}, .attrs = {{"amax", 1}, {"eps", 1e-5}}}},
};

const OpDef add_rms_norm{
    .name = "add_rms_norm",
    .contract = "sum = a + c; y = sum·r·w, r = 1/sqrt(mean(sum²) + eps), row by row.",
    .operands = "a[b s h], c[b s h], w[h] -> sum[b s h], y[b s h], r[b s], amax?[]",
    .attrs = {"amax", "eps"},
    .wide = {2, 3},
    .rows = {"b", "s"},
    .without_letter = kPartialMax,
    .cost = streaming_cost(5),
    .alias = {{.output = 0, .input = 0}, {.output = 0, .input = 1}},
    .examples = {{.name = "small", .inputs = {f64({2, 4, 8}), f64({2, 4, 8}), f64({8})}, .attrs = {{"eps", 1e-5}}},
                 {.name = "amax",
                  .inputs = {f64({2, 4, 8}), f64({2, 4, 8}), f64({8})},
                  .attrs = {{"amax", 1}, {"eps", 1e-5}}}},
};

const OpDef rms_norm_backward{
    .name = "rms_norm_backward",
    .contract = "dx = r·(dy·w − x·r²·mean(dy·w·x)) (+ plus); dw = Σ dy·x·r.",
    .operands = "dy[b s h], x[b s h], w[h], r[b s], plus?[b s h] -> dx[b s h], dw[h], amax?[]",
    .attrs = {"amax"},
    .wide = {1, 2},
    .rows = {"dy:S(b) x:S(b) r:S(b) plus:S(b) -> dx:S(b) dw:P amax:P(max)",
             "dy:S(s) x:S(s) r:S(s) plus:S(s) -> dx:S(s) dw:P amax:P(max)"},
    .cost = streaming_cost(9),
    .alias = {{.output = 0, .input = 0}, {.output = 0, .input = 4}},
    .passes = {.compiled = {1.8, 2}, .jit = {1.5, 2}, .eager = {5, 9}},
    .examples = {{.name = "small", .inputs = {f64({2, 4, 8}), f64({2, 4, 8}), f64({8}), f64({2, 4})}},
                 {.name = "plus", .inputs = {f64({2, 4, 8}), f64({2, 4, 8}), f64({8}), f64({2, 4}), f64({2, 4, 8})}},
                 {.name = "amax",
                  .inputs = {f64({2, 4, 8}), f64({2, 4, 8}), f64({8}), f64({2, 4}), f64({2, 4, 8})},
                  .attrs = {{"amax", 1}}}},
};

}  // namespace sextant::ops
