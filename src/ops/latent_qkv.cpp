// latent_qkv: the packed q|k|v rows of latent attention (DeepSeek-V2). A row of kv has for every key head first the
// elements of its key that are its own, then its value; the last shared_dim elements of every key are the same for all
// heads. Saves nothing: the gradient takes the rows apart, and adds up what the heads give the shared elements.
//
// No row along r: every head needs all of the shared elements.
#include "ops/attention_widths.h"
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

namespace {

int64_t latent_kv_width(const Attrs& attrs) {
  return key_width(attrs) + value_width(attrs) - attrs.integer("kv_heads") * attrs.integer("shared_dim");
}

}  // namespace

const OpDef latent_qkv{
    .name = "latent_qkv",
    .contract =
        "qkv = q | k | v, where key head h is (own part h of kv | shared) and value head h is value part h of kv.",
    .operands = "q[b s f], kv[b s c], shared[b s r] -> qkv[b s e]",
    .attrs = {"heads", "kv_heads", "head_dim", "value_dim", "shared_dim"},
    .shape = [](const Attrs& attrs, auto in) -> TensorTypes {
      const GlobalShape& q = in[0].shape;
      return {{in[0].dtype, {q[0], q[1], query_width(attrs) + key_width(attrs) + value_width(attrs)}}};
    },
    .rows = {"b", "s", "q:S(f) kv:S(c) shared:R -> qkv:S(e)"},
    .backward =
        [](BackwardScope& s) {
          s.emit({latent_qkv_backward, {s.output_gradient(0)}, {0, 1, 2}, s.op().attrs});
        },
    .cost = streaming_cost(0),
    .examples = {{.name = "one_width",
                  .inputs = {f64({2, 4, 16}), f64({2, 4, 24}), f64({2, 4, 2})},
                  .attrs = {{"heads", 4}, {"kv_heads", 4}, {"head_dim", 4}, {"value_dim", 4}, {"shared_dim", 2}}},
                 {.name = "wide_keys",
                  .inputs = {f64({3, 12, 36}), f64({3, 12, 30}), f64({3, 12, 2})},
                  .attrs = {{"heads", 6}, {"kv_heads", 6}, {"head_dim", 6}, {"value_dim", 1}, {"shared_dim", 2}}}},
};

const OpDef latent_qkv_backward{
    .name = "latent_qkv_backward",
    .contract = "dq, dkv = what latent_qkv made of them; dshared = the sum over key heads.",
    .operands = "dqkv[b s e] -> dq[b s f], dkv[b s c], dshared[b s r]",
    .attrs = {"heads", "kv_heads", "head_dim", "value_dim", "shared_dim"},
    .shape = [](const Attrs& attrs, auto in) -> TensorTypes {
      const GlobalShape& dqkv = in[0].shape;
      auto rows = [&](int64_t width) { return TensorType{in[0].dtype, {dqkv[0], dqkv[1], width}}; };
      return {rows(query_width(attrs)), rows(latent_kv_width(attrs)), rows(attrs.integer("shared_dim"))};
    },
    .rows = {"b", "s", "dqkv:S(e) -> dq:S(f) dkv:S(c) dshared:P"},
    .cost = streaming_cost(1),
    .examples = {{.name = "wide_keys",
                  .inputs = {f64({3, 12, 78})},
                  .attrs = {{"heads", 6}, {"kv_heads", 6}, {"head_dim", 6}, {"value_dim", 1}, {"shared_dim", 2}}}},
};

}  // namespace sextant::ops
