// swiglu: x holds gate|up in its last dim; y = silu(gate)·up. Saves x. With amax=1 the largest magnitude of y, or of
// dx, is found in the same pass over memory.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

const OpDef swiglu{
    .name = "swiglu",
    .contract = "y = silu(gate)·up with x = gate|up; silu(g) = g/(1 + exp(−g)).",
    .operands = "x[b s g] -> y[b s f], amax?[]",
    .attrs = {"amax"},
    .shape = [](const Attrs& attrs, auto in) -> TensorTypes {
      return with_amax(attrs, {{in[0].dtype, {in[0].shape[0], in[0].shape[1], in[0].shape[2] / 2}}});
    },
    .rows = {"b", "s", "x:S(g) -> y:S(f) amax:P(max)"},
    .without_letter = kPartialMax,
    .backward =
        [](BackwardScope& s) {
          s.emit({swiglu_backward, {s.output_gradient(0), s.input(0)}, {0}});
        },
    .cost = streaming_cost(6),
    .passes = {.compiled = {1, 1}, .jit = {1.2, 1}, .eager = {1.7, 2}},
    .gated = true,
    .examples = {{.name = "small", .inputs = {f64({2, 4, 12})}},
                 {.name = "amax", .inputs = {f64({2, 4, 12})}, .attrs = {{"amax", 1}}}},
};

const OpDef swiglu_backward{
    .name = "swiglu_backward",
    .contract = "dgate = dy·up·silu'(gate), dup = dy·silu(gate).",
    .operands = "dy[b s f], x[b s g] -> dx[b s g], amax?[]",
    .attrs = {"amax"},
    .shape = [](const Attrs& attrs, auto in) -> TensorTypes { return with_amax(attrs, {in[1]}); },
    .rows = {"b", "s", "dy:S(f) x:S(g) -> dx:S(g) amax:P(max)"},
    .without_letter = kPartialMax,
    .cost = streaming_cost(6),
    .alias = {{.output = 0, .input = 1}},
    .passes = {.compiled = {1, 1}, .jit = {1.2, 1}, .eager = {2.2, 4}},
    .examples = {{.name = "small", .inputs = {f64({2, 4, 6}), f64({2, 4, 12})}},
                 {.name = "amax", .inputs = {f64({2, 4, 6}), f64({2, 4, 12})}, .attrs = {{"amax", 1}}}},
};

}  // namespace sextant::ops
