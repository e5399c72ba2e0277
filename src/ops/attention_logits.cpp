// attention_logits: the largest score that enters the softmax of attention, for metrics: logits that keep growing are
// how attention becomes unstable (Zhai et al. 2023, Dehghani et al. 2023). It reads what attention reads, and sees the
// keys that attention sees; a sink is no score of a key.
//
// No row along s: a query meets keys of all positions.
#include "ops/attention_widths.h"
#include "ops/attention_window.h"
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

const OpDef attention_logits{
    .name = "attention_logits",
    .contract =
        "largest = the largest c·q·k over all heads, queries and keys that attention with these attrs sees; with alibi "
        "less slope(head)·(i − j).",
    .operands = "qkv[b s e], begins?[b s] -> largest[]",
    .attrs = {"heads", "kv_heads", "head_dim", "value_dim", "alibi", "scale", "window", "chunk"},
    .shape = [](const Attrs&, auto in) -> TensorTypes {
      return {{in[0].dtype, GlobalShape{}}};
    },
    .wide = {0},
    .rows = {"b", "qkv:S(e) begins:R -> largest:P(max)"},
    .without_letter = kPartialMax,
    .cost =
        [](const Attrs& attrs, auto in, auto) {
          const GlobalShape& shape = in[0].shape;
          auto length = static_cast<double>(shape[1]);
          double pairs = static_cast<double>(shape[0]) * length * length * share_seen(length, key_range_of(attrs));
          return Cost{.flops = {2 * pairs * static_cast<double>(query_width(attrs))}, .read = in[0].bytes()};
        },
    .recompute = Recompute::never,
    .examples = {{.name = "gqa",
                  .inputs = {f64({2, 6, 32})},
                  .attrs = {{"heads", 4}, {"kv_heads", 2}, {"head_dim", 4}}},
                 {.name = "wide_keys",
                  .inputs = {f64({2, 6, 44})},
                  .attrs = {{"heads", 4}, {"kv_heads", 2}, {"head_dim", 6}, {"value_dim", 4}}},
                 {.name = "alibi",
                  .inputs = {f64({2, 12, 20})},
                  .attrs = {{"heads", 6}, {"kv_heads", 2}, {"head_dim", 2}, {"alibi", 1}}},
                 {.name = "window",
                  .inputs = {f64({1, 80, 12})},
                  .attrs = {{"heads", 2}, {"kv_heads", 2}, {"head_dim", 2}, {"window", 9}, {"scale", 0.2}}},
                 {.name = "documents",
                  .inputs = {f64({2, 6, 32}), i32({2, 6})},
                  .attrs = {{"heads", 4}, {"kv_heads", 2}, {"head_dim", 4}, {"chunk", 4}},
                  .integers_below = 6}},
};

}  // namespace sextant::ops
