// attention_cached: attention for generation. Writes the new keys and values into the caches at positions start …
// start+s−1, then attends each new query to all positions up to its own. Used for both prefill (s > 1) and decode (s =
// 1).
#include <algorithm>

#include "ops/attention_widths.h"
#include "ops/attention_window.h"
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

// No gradient: generation only. No row along s or m: the new positions are one contiguous piece of the cache. No row
// along d or v: every score is a product over all of a head, and y has all of a head's values.
const OpDef attention_cached{
    .name = "attention_cached",
    .contract =
        "k, v caches[start+i] = the new k, v; y = softmax(c·q·kᵀ, causal)·v over the caches; c, alibi and "
        "window and chunk as in attention, sinks as in sink_attention.",
    .operands =
        "qkv[b s e], keys[b k m d], values[b k m v], start[], sinks?[q] -> y[b s a], keys_next[b k m d], values_next[b "
        "k m v]",
    .attrs = {"heads", "kv_heads", "head_dim", "value_dim", "alibi", "scale", "window", "chunk"},
    .shape = [](const Attrs& attrs, auto in) -> TensorTypes {
      const GlobalShape& s = in[0].shape;
      return {{in[0].dtype, {s[0], s[1], output_width(attrs)}}, in[1], in[2]};
    },
    .rows = {"b", "qkv:S(e) keys:S(k) values:S(k) sinks:S(q) -> y:S(a) keys_next:S(k) values_next:S(k)"},
    .cost =
        [](const Attrs& a, auto in, auto out) {
          // Where the caches stand is known at run time only: several queries are taken for a prompt, which sees
          // itself, and one alone for the last, which sees all. `y` tells how many heads are here.
          const GlobalShape& y = out[0].shape;
          double value_dim = static_cast<double>(value_dim_of(a)), queries = static_cast<double>(y[1]);
          double positions = static_cast<double>(in[1].shape[2]),
                 keys = queries > 1 ? std::min(queries, positions) : positions;
          KeyRange range = key_range_of(a);
          for (int64_t most : {range.window, range.chunk})
            if (queries == 1 && most > 0) keys = std::min(keys, static_cast<double>(most));
          AttentionWork work{.batch = static_cast<double>(y[0]),
                             .heads = static_cast<double>(y[2]) / value_dim,
                             .queries = queries,
                             .keys = keys,
                             .head_dim = static_cast<double>(a.integer("head_dim")),
                             .value_dim = value_dim,
                             .seen = queries > 1 ? share_seen(queries, range) : 1,
                             .kv_heads = static_cast<double>(in[1].shape[1])};
          auto seen = [&](Bytes cache) {
            return Bytes{static_cast<int64_t>(static_cast<double>(cache.n) * keys / positions)};
          };
          return Cost{.flops = {work.flops()},
                      .read = in[0].bytes() + seen(in[1].bytes()) + seen(in[2].bytes()),
                      .written = out[0].bytes(),
                      .attention = work};
        },
    .alias = {{.output = 1, .input = 1, .rule = Alias::Rule::must},
              {.output = 2, .input = 2, .rule = Alias::Rule::must}},
    .recompute = Recompute::never,
    .examples = {{.name = "prefill",
                  .inputs = {f64({2, 3, 32}), f64({2, 2, 8, 4}), f64({2, 2, 8, 4}), i32({})},
                  .attrs = {{"heads", 4}, {"kv_heads", 2}, {"head_dim", 4}},
                  .integers_below = 5},
                 {.name = "wide_keys",
                  .inputs = {f64({2, 3, 44}), f64({2, 2, 8, 6}), f64({2, 2, 8, 4}), i32({})},
                  .attrs = {{"heads", 4}, {"kv_heads", 2}, {"head_dim", 6}, {"value_dim", 4}},
                  .integers_below = 5},
                 {.name = "scale",
                  .inputs = {f64({2, 3, 32}), f64({2, 2, 8, 4}), f64({2, 2, 8, 4}), i32({})},
                  .attrs = {{"heads", 4}, {"kv_heads", 2}, {"head_dim", 4}, {"scale", 0.2}},
                  .integers_below = 5},
                 {.name = "sinks",
                  .inputs = {f64({2, 3, 32}), f64({2, 2, 8, 4}), f64({2, 2, 8, 4}), i32({}), f64({4})},
                  .attrs = {{"heads", 4}, {"kv_heads", 2}, {"head_dim", 4}, {"window", 3}},
                  .integers_below = 5},
                 {.name = "window",
                  .inputs = {f64({2, 3, 32}), f64({2, 2, 8, 4}), f64({2, 2, 8, 4}), i32({})},
                  .attrs = {{"heads", 4}, {"kv_heads", 2}, {"head_dim", 4}, {"window", 3}},
                  .integers_below = 5},
                 {.name = "chunk",
                  .inputs = {f64({2, 3, 32}), f64({2, 2, 8, 4}), f64({2, 2, 8, 4}), i32({})},
                  .attrs = {{"heads", 4}, {"kv_heads", 2}, {"head_dim", 4}, {"chunk", 3}},
                  .integers_below = 5},
                 {.name = "alibi",
                  .inputs = {f64({2, 3, 20}), f64({2, 2, 8, 2}), f64({2, 2, 8, 2}), i32({})},
                  .attrs = {{"heads", 6}, {"kv_heads", 2}, {"head_dim", 2}, {"alibi", 1}},
                  .integers_below = 5}},
};

}  // namespace sextant::ops
