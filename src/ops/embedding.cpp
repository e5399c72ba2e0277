// embedding: y[b,s,:] = w[tokens[b,s],:]; a rank with a part of the rows gives zeros for the others. Saves tokens. The
// gradient adds each row of dy to the row its token names. `padding` is a token whose row gets no gradient from here
// (padding_idx of torch.nn.Embedding); -1 = none.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

const OpDef embedding{
    .name = "embedding",
    .contract = "y = the rows of w that the tokens name.",
    .operands = "tokens[b s], w[v h] -> y[b s h]",
    .attrs = {"padding"},
    .shape = [](const Attrs&, auto in) -> TensorTypes {
      return {{in[1].dtype, {in[0].shape[0], in[0].shape[1], in[1].shape[1]}}};
    },
    .rows = {"b", "s", "h", "tokens:R w:S(v) -> y:P"},
    .backward =
        [](BackwardScope& s) {
          if (!s.needs_gradient(1)) return;
          s.emit({embedding_backward,
                  {s.output_gradient(0), s.input(0), s.input(1)},
                  {1},
                  s.op().attrs,
                  Phase::weight_gradient});
        },
    .cost = [](const Attrs&, auto in,
               auto out) { return Cost{.read = in[0].bytes() + out[0].bytes(), .written = out[0].bytes()}; },
    .lookup = TokenLookup::rows,
    .examples = {{.name = "small", .inputs = {i32({2, 6}), f64({8, 4})}, .integers_below = 8}},
};

// w is an operand for its shape only, and costs nothing: it is a weight and lives anyway.
const OpDef embedding_backward{
    .name = "embedding_backward",
    .contract = "dw[t] = Σ dy over the places where the token is t; nothing where t is `padding`.",
    .operands = "dy[b s h], tokens[b s], w[v h] -> dw[v h]",
    .attrs = {"padding"},
    .wide = {0},
    .rows = {"b", "s", "h", "dy:R tokens:R w:S(v) -> dw:S(v)"},
    .cost =
        [](const Attrs&, auto in, auto) {
          return Cost{.flops = {static_cast<double>(in[0].shape.count())},
                      .read = in[0].bytes() + in[0].bytes() + in[1].bytes(),
                      .written = in[0].bytes()};
        },
    .accumulate = Accumulate::supported,
    .passes = {.compiled = {1.5, 2}, .jit = {1.5, 2}, .eager = {1.5, 2}},
    .lookup = TokenLookup::gradients,
    .examples = {{.name = "small", .inputs = {f64({2, 6, 4}), i32({2, 6}), f64({8, 4})}, .integers_below = 8},
                 {.name = "padding",
                  .inputs = {f64({2, 6, 4}), i32({2, 6}), f64({8, 4})},
                  .attrs = {{"padding", 3}},
                  .integers_below = 8}},
};

}  // namespace sextant::ops
