// attention: causal softmax attention over a packed qkv row (heads query heads, kv_heads key and value heads, each head_dim
// wide; query head h reads key head h·kv_heads/heads). Saves qkv, y and the log-sum-exp of each row, so that backward needs
// no s×s matrix.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

namespace {

// Causal: half of the s×s square, two products forward (q·kᵀ, p·v), five backward.
Cost attention_cost(const Attrs& attrs, std::span<const TensorType> in, std::span<const TensorType> out,
                    const GlobalShape& qkv, double products) {
  double b = static_cast<double>(qkv[0]), s = static_cast<double>(qkv[1]);
  double width = static_cast<double>(attrs.integer("heads") * attrs.integer("head_dim"));
  Cost cost{.flops = {products * 2 * b * s * (s + 1) / 2 * width}};
  for (const TensorType& t : in) cost.read += t.bytes();
  for (const TensorType& t : out) cost.written += t.bytes();
  return cost;
}

}  // namespace

// Along e, heads are split: head counts in attrs are global, and partition divides them with the dim.
const OpDef attention{
    .name = "attention",
    .contract = "y = softmax(q·kᵀ/sqrt(head_dim), causal)·v per head; lse = log Σ exp of each row.",
    .operands = "qkv[b s e] -> y[b s a], lse[b q s]",
    .attrs = {"heads", "kv_heads", "head_dim"},
    .shape = [](const Attrs& attrs, auto in) -> TensorTypes {
      const GlobalShape& s = in[0].shape;
      return {{in[0].dtype, {s[0], s[1], attrs.integer("heads") * attrs.integer("head_dim")}},
              {in[0].dtype, {s[0], attrs.integer("heads"), s[1]}}};
    },
    .rows = {"b", "qkv:S(e) -> y:S(a) lse:S(q)"},
    .backward =
        [](BackwardScope& s) {
          s.emit({attention_backward, {s.output_gradient(0), s.input(0), s.output(0), s.output(1)}, {0}, s.op().attrs});
        },
    .cost = [](const Attrs& a, auto in, auto out) { return attention_cost(a, in, out, in[0].shape, 2); },
    .examples = {{.name = "gqa",
                  .inputs = {f64({2, 6, 32})},
                  .attrs = {{"heads", 4}, {"kv_heads", 2}, {"head_dim", 4}}},
                 {.name = "mha_long",
                  .inputs = {f64({1, 70, 12})},
                  .attrs = {{"heads", 2}, {"kv_heads", 2}, {"head_dim", 2}}}},
};

const OpDef attention_backward{
    .name = "attention_backward",
    .contract = "With p = exp(q·kᵀ·c − lse), d = Σ dy·y: dv = pᵀ·dy, ds = p·(dy·vᵀ − d), dq = c·ds·k, dk = c·dsᵀ·q.",
    .operands = "dy[b s a], qkv[b s e], y[b s a], lse[b q s] -> dqkv[b s e]",
    .attrs = {"heads", "kv_heads", "head_dim"},
    .rows = {"b", "dy:S(a) qkv:S(e) y:S(a) lse:S(q) -> dqkv:S(e)"},
    .cost = [](const Attrs& a, auto in, auto out) { return attention_cost(a, in, out, in[1].shape, 5); },
    .examples = {{.name = "gqa",
                  .inputs = {f64({2, 6, 16}), f64({2, 6, 32}), f64({2, 6, 16}), f64({2, 4, 6})},
                  .attrs = {{"heads", 4}, {"kv_heads", 2}, {"head_dim", 4}}}},
};

}  // namespace sextant::ops
