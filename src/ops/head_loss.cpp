// head_loss: output head and cross-entropy in one op, so that the logits of all tokens never exist at once.
// For every row with target t ≥ 0: logits l = w·x, lse = log Σ exp(l), loss += lse − l[t] + z_loss·lse². Rows with a negative
// target do not count. The sum is not divided: the gradient that enters (1/tokens of the global batch) does that.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

// The backward op computes the loss too (it needs the logits anyway), so in training the forward op does not run.
const OpDef head_loss{
    .name = "head_loss",
    .contract = "loss = Σ over rows with target t >= 0 of lse − l[t] + z_loss·lse², l = w·x, lse = log Σ exp(l).",
    .operands = "x[b s h], w[v h], targets[b s] -> loss[]",
    .attrs = {"z_loss"},
    .rows = {"b", "s"},
    .backward =
        [](BackwardScope& s) {
          s.emit({head_loss_backward,
                  {s.input(0), s.input(1), s.input(2), s.output_gradient(0)},
                  {1, 0, BackwardScope::kForwardOutput},
                  s.op().attrs});
        },
    .cost = [](const Attrs&, auto in, auto out) {
      return matmul_cost(static_cast<double>(in[0].shape.rows()), static_cast<double>(in[0].shape.last()),
                         static_cast<double>(in[1].shape[0]), in, out);
    },
    .examples = {{.name = "plain", .inputs = {f64({2, 4, 6}), f64({7, 6}), i32({2, 4})}, .attrs = {{"z_loss", 0.0}},
                  .integers_below = 7},
                 {.name = "z_loss", .inputs = {f64({1, 5, 6}), f64({9, 6}), i32({1, 5})}, .attrs = {{"z_loss", 0.01}},
                  .integers_below = 9}},
};

const OpDef head_loss_backward{
    .name = "head_loss_backward",
    .contract = "With p = softmax(l): dl = dloss·(p·(1 + 2·z_loss·lse) − onehot(t)); dw = dlᵀ·x, dx = dl·w; and the loss.",
    .operands = "x[b s h], w[v h], targets[b s], dloss[] -> dw[v h], dx[b s h], loss[]",
    .attrs = {"z_loss"},
    .shape = [](const Attrs&, auto in) -> TensorTypes { return {in[1], in[0], {in[0].dtype, {}}}; },
    .rows = {"b", "s"},
    .cost = [](const Attrs&, auto in, auto out) {
      return matmul_cost(3 * static_cast<double>(in[0].shape.rows()), static_cast<double>(in[0].shape.last()),
                         static_cast<double>(in[1].shape[0]), in, out);
    },
    .accumulate = Accumulate::supported,
    .examples = {{.name = "plain", .inputs = {f64({2, 4, 6}), f64({7, 6}), i32({2, 4}), f64({})},
                  .attrs = {{"z_loss", 0.0}}, .integers_below = 7}},
};

}  // namespace sextant::ops
