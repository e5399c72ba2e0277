// gelu, in the tanh form that GPT-2 uses: y = x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³))), and gelu_erf, what that form
// is close to and GPT-NeoX and MPT use: y = x/2·(1 + erf(x/√2)). Two ops, because a GEMM can be fused with the first
// only (passes/fuse). Both save x. amax: see swiglu.cpp.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

const OpDef gelu{
    .name = "gelu",
    .contract = "y = x/2·(1 + tanh(sqrt(2/pi)·(x + 0.044715·x³))).",
    .operands = "x[*] -> y[*], amax?[]",
    .attrs = {"amax"},
    .wide = {1},
    .rows = {"*"},
    .without_letter = kPartialMax,
    .backward =
        [](BackwardScope& s) {
          s.emit({gelu_backward, {s.output_gradient(0), s.input(0)}, {0}});
        },
    .cost = streaming_cost(10),
    .alias = {{.output = 0, .input = 0}},
    // the bias is added by a kernel of its own
    .passes = {.compiled = {1, 1}, .jit = {1, 1}, .eager = {1.5, 2}},
    .examples = {{.name = "small", .inputs = {f64({2, 4, 6})}},
                 {.name = "amax", .inputs = {f64({2, 4, 6})}, .attrs = {{"amax", 1}}}},
};

const OpDef gelu_backward{
    .name = "gelu_backward",
    .contract = "dx = dy·gelu'(x).",
    .operands = "dy[*], x[*] -> dx[*], amax?[]",
    .attrs = {"amax"},
    .wide = {1},
    .rows = {"*"},
    .without_letter = kPartialMax,
    .cost = streaming_cost(16),
    .alias = {{.output = 0, .input = 0}},
    .passes = {.compiled = {1, 1}, .jit = {1, 1}, .eager = {1.2, 1}},
    .examples = {{.name = "small", .inputs = {f64({2, 4, 6}), f64({2, 4, 6})}},
                 {.name = "amax", .inputs = {f64({2, 4, 6}), f64({2, 4, 6})}, .attrs = {{"amax", 1}}}},
};

const OpDef gelu_erf{
    .name = "gelu_erf",
    .contract = "y = x/2·(1 + erf(x/sqrt(2))).",
    .operands = "x[*] -> y[*], amax?[]",
    .attrs = {"amax"},
    .wide = {1},
    .rows = {"*"},
    .without_letter = kPartialMax,
    .backward =
        [](BackwardScope& s) {
          s.emit({gelu_erf_backward, {s.output_gradient(0), s.input(0)}, {0}});
        },
    .cost = streaming_cost(16),
    .alias = {{.output = 0, .input = 0}},
    .examples = {{.name = "small", .inputs = {f64({2, 4, 6})}},
                 {.name = "amax", .inputs = {f64({2, 4, 6})}, .attrs = {{"amax", 1}}}},
};

const OpDef gelu_erf_backward{
    .name = "gelu_erf_backward",
    .contract = "dx = dy·((1 + erf(x/sqrt(2)))/2 + x·exp(−x²/2)/sqrt(2·pi)).",
    .operands = "dy[*], x[*] -> dx[*], amax?[]",
    .attrs = {"amax"},
    .wide = {1},
    .rows = {"*"},
    .without_letter = kPartialMax,
    .cost = streaming_cost(20),
    .alias = {{.output = 0, .input = 0}},
    .examples = {{.name = "small", .inputs = {f64({2, 4, 6}), f64({2, 4, 6})}},
                 {.name = "amax", .inputs = {f64({2, 4, 6}), f64({2, 4, 6})}, .attrs = {{"amax", 1}}}},
};

}  // namespace sextant::ops
