// geglu: x holds gate|up in its last dim; y = gelu(gate)·up with GELU in its tanh form, as in Gemma. Saves x.
// amax: see swiglu.cpp.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

const OpDef geglu{
    .name = "geglu",
    .contract = "y = gelu(gate)·up with x = gate|up; gelu(g) = g/2·(1 + tanh(sqrt(2/pi)·(g + 0.044715·g³))).",
    .operands = "x[b s g] -> y[b s f], amax?[]",
    .attrs = {"amax"},
    .shape = [](const Attrs& attrs, auto in) -> TensorTypes {
      return with_amax(attrs, {{in[0].dtype, {in[0].shape[0], in[0].shape[1], in[0].shape[2] / 2}}});
    },
    .rows = {"b", "s", "x:S(g) -> y:S(f) amax:P(max)"},
    .without_letter = kPartialMax,
    .backward =
        [](BackwardScope& s) {
          s.emit({geglu_backward, {s.output_gradient(0), s.input(0)}, {0}});
        },
    .cost = streaming_cost(11),
    .passes = {.compiled = {1, 1}, .jit = {1.2, 1}, .eager = {1.7, 2}},
    .gated = true,
    .examples = {{.name = "small", .inputs = {f64({2, 4, 12})}},
                 {.name = "amax", .inputs = {f64({2, 4, 12})}, .attrs = {{"amax", 1}}}},
};

const OpDef geglu_backward{
    .name = "geglu_backward",
    .contract = "dgate = dy·up·gelu'(gate), dup = dy·gelu(gate).",
    .operands = "dy[b s f], x[b s g] -> dx[b s g], amax?[]",
    .attrs = {"amax"},
    .shape = [](const Attrs& attrs, auto in) -> TensorTypes { return with_amax(attrs, {in[1]}); },
    .rows = {"b", "s", "dy:S(f) x:S(g) -> dx:S(g) amax:P(max)"},
    .without_letter = kPartialMax,
    .cost = streaming_cost(13),
    .alias = {{.output = 0, .input = 1}},
    .passes = {.compiled = {1, 1}, .jit = {1.2, 1}, .eager = {2.2, 4}},
    .examples = {{.name = "small", .inputs = {f64({2, 4, 6}), f64({2, 4, 12})}},
                 {.name = "amax", .inputs = {f64({2, 4, 6}), f64({2, 4, 12})}, .attrs = {{"amax", 1}}}},
};

}  // namespace sextant::ops
