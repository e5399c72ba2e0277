// The RMS norm of whole rows of q and of k in packed qkv rows, as OLMo 2 has before RoPE; v passes through. Two ops,
// because tensor-parallel ranks hold a part of each row: qk_squares finds the mean squares, of which every rank has a
// part, and qk_norm_wide divides by their roots. Both save qkv.
//
// Means are over all heads that attrs count. Weights are whole on every rank, which uses those of its heads. Where key
// heads are repeated for the ranks (repeat_kv), kv_heads counts the copies: their mean is that of the heads themselves,
// and wk has the heads that they are copies of.
//
// No row along i or j: a rank's heads need not be those of its part of the weights. No row along p: two numbers.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

const OpDef qk_squares{
    .name = "qk_squares",
    .contract = "squares = (Σ x²/(heads·head_dim) over q, Σ x²/(kv_heads·head_dim) over k).",
    .operands = "qkv[b s e] -> squares[b s p]",
    .attrs = {"heads", "kv_heads", "head_dim"},
    .shape = [](const Attrs&, auto in) -> TensorTypes {
      return {{in[0].dtype, {in[0].shape[0], in[0].shape[1], 2}}};
    },
    .wide = {0},
    .rows = {"b", "s", "qkv:S(e) -> squares:P"},
    .backward =
        [](BackwardScope& s) {
          s.emit({qk_squares_backward, {s.output_gradient(0), s.input(0)}, {0}, s.op().attrs});
        },
    .cost = streaming_cost(2),
    .recompute = Recompute::first,
    .examples =
        {{.name = "gqa", .inputs = {f64({2, 4, 32})}, .attrs = {{"heads", 4}, {"kv_heads", 2}, {"head_dim", 4}}},
         {.name = "odd", .inputs = {f64({1, 3, 15})}, .attrs = {{"heads", 3}, {"kv_heads", 1}, {"head_dim", 3}}}},
};

const OpDef qk_squares_backward{
    .name = "qk_squares_backward",
    .contract = "dqkv = 2·x·dsquares/(heads·head_dim) in q, with kv_heads in k, 0 in v.",
    .operands = "dsquares[b s p], qkv[b s e] -> dqkv[b s e]",
    .attrs = {"heads", "kv_heads", "head_dim"},
    .shape = [](const Attrs&, auto in) -> TensorTypes { return {in[1]}; },
    .rows = {"b", "s", "dsquares:R qkv:S(e) -> dqkv:S(e)"},
    .cost = streaming_cost(2),
    .examples = {{.name = "gqa",
                  .inputs = {f64({2, 4, 2}), f64({2, 4, 32})},
                  .attrs = {{"heads", 4}, {"kv_heads", 2}, {"head_dim", 4}}}},
};

const OpDef qk_norm_wide{
    .name = "qk_norm_wide",
    .contract = "y = x·w/sqrt(squares + eps) in q and in k; v as it is.",
    .operands = "qkv[b s e], wq[i], wk[j], squares[b s p] -> y[b s e]",
    .attrs = {"heads", "kv_heads", "head_dim", "eps"},
    .rows = {"b", "s", "qkv:S(e) wq:R wk:R squares:R -> y:S(e)"},
    .backward =
        [](BackwardScope& s) {
          s.emit({qk_norm_wide_backward,
                  {s.output_gradient(0), s.input(0), s.input(1), s.input(2), s.input(3)},
                  {0, 1, 2, 3},
                  s.op().attrs});
        },
    .cost = streaming_cost(3),
    .alias = {{.output = 0, .input = 0}},
    .examples = {{.name = "gqa",
                  .inputs = {f64({2, 4, 32}), f64({16}), f64({8}), f64({2, 4, 2})},
                  .attrs = {{"heads", 4}, {"kv_heads", 2}, {"head_dim", 4}, {"eps", 9.0}}},
                 {.name = "copies",
                  .inputs = {f64({2, 4, 32}), f64({16}), f64({4}), f64({2, 4, 2})},
                  .attrs = {{"heads", 4}, {"kv_heads", 2}, {"head_dim", 4}, {"eps", 9.0}}}},
};

const OpDef qk_norm_wide_backward{
    .name = "qk_norm_wide_backward",
    .contract =
        "With r = 1/sqrt(squares + eps), in q and in k: dx = dy·w·r, dw = Σ dy·x·r over rows, dsquares = "
        "−r³/2·Σ dy·w·x over the row; dv = dy.",
    .operands = "dy[b s e], qkv[b s e], wq[i], wk[j], squares[b s p] -> dqkv[b s e], dwq[i], dwk[j], dsquares[b s p]",
    .attrs = {"heads", "kv_heads", "head_dim", "eps"},
    .shape = [](const Attrs&, auto in) -> TensorTypes {
      return {in[1], in[2], in[3], in[4]};
    },
    .wide = {1, 2, 3},
    .rows = {"b", "s", "dy:S(e) qkv:S(e) wq:R wk:R squares:R -> dqkv:S(e) dwq:P dwk:P dsquares:P"},
    .cost = streaming_cost(8),
    .examples = {{.name = "gqa",
                  .inputs = {f64({2, 4, 32}), f64({2, 4, 32}), f64({16}), f64({8}), f64({2, 4, 2})},
                  .attrs = {{"heads", 4}, {"kv_heads", 2}, {"head_dim", 4}, {"eps", 9.0}}},
                 {.name = "copies",
                  .inputs = {f64({2, 4, 32}), f64({2, 4, 32}), f64({16}), f64({4}), f64({2, 4, 2})},
                  .attrs = {{"heads", 4}, {"kv_heads", 2}, {"head_dim", 4}, {"eps", 9.0}}}},
};

}  // namespace sextant::ops
