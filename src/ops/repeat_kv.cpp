// repeat_kv: packs query weights and key-value weights into one matrix whose key-value heads are repeated, so that
// every tensor-parallel rank finds the one its query heads read, also when there are fewer of them than ranks. Saves
// nothing.
//
// y has heads query heads, then `copies` key heads, then `copies` value heads, each head_dim rows; copy i is head
// i·kv_heads/copies. Along e a rank packs its own query heads and copies: q is split with y, kv is whole on every rank,
// so that its gradient is partial and summed over the ranks that used a copy. No row along h: one would do, nobody
// needs it. No row along c: the copies of one head go to several ranks.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

const OpDef repeat_kv{
    .name = "repeat_kv",
    .contract = "y = q | k repeated | v repeated, head by head.",
    .operands = "q[a h], kv[c h] -> y[e h]",
    .attrs = {"heads", "kv_heads", "head_dim", "copies"},
    .shape = [](const Attrs& attrs, auto in) -> TensorTypes {
      int64_t rows = (attrs.integer("heads") + 2 * attrs.integer("copies")) * attrs.integer("head_dim");
      return {{in[0].dtype, {rows, in[0].shape[1]}}};
    },
    .rows = {"q:S(a) kv:R -> y:S(e)"},
    .backward =
        [](BackwardScope& s) {
          s.emit({repeat_kv_backward,
                  {s.output_gradient(0), s.input(0), s.input(1)},
                  {0, 1},
                  s.op().attrs,
                  Phase::weight_gradient});
        },
    .cost = streaming_cost(0),
    .examples = {{.name = "one_to_two",
                  .inputs = {f64({8, 3}), f64({4, 3})},
                  .attrs = {{"heads", 4}, {"kv_heads", 1}, {"head_dim", 2}, {"copies", 2}}},
                 {.name = "two_to_four",
                  .inputs = {f64({16, 3}), f64({8, 3})},
                  .attrs = {{"heads", 8}, {"kv_heads", 2}, {"head_dim", 2}, {"copies", 4}}}},
};

// q and kv are operands for their shapes only.
const OpDef repeat_kv_backward{
    .name = "repeat_kv_backward",
    .contract = "dq = the query rows of dy; dkv = for each key-value head the sum over its copies.",
    .operands = "dy[e h], q[a h], kv[c h] -> dq[a h], dkv[c h]",
    .attrs = {"heads", "kv_heads", "head_dim", "copies"},
    .shape = [](const Attrs&, auto in) -> TensorTypes {
      return {in[1], in[2]};
    },
    .wide = {0, 1},
    .rows = {"dy:S(e) q:S(a) kv:R -> dq:S(a) dkv:P"},
    .cost = streaming_cost(1),
    .examples = {{.name = "one_to_two",
                  .inputs = {f64({16, 3}), f64({8, 3}), f64({4, 3})},
                  .attrs = {{"heads", 4}, {"kv_heads", 1}, {"head_dim", 2}, {"copies", 2}}}},
};

// The same for biases, whose rows are single numbers.
const OpDef repeat_kv_bias{
    .name = "repeat_kv_bias",
    .contract = "y = q | k repeated | v repeated, head by head.",
    .operands = "q[a], kv[c] -> y[e]",
    .attrs = {"heads", "kv_heads", "head_dim", "copies"},
    .shape = [](const Attrs& attrs, auto in) -> TensorTypes {
      return {{in[0].dtype, {(attrs.integer("heads") + 2 * attrs.integer("copies")) * attrs.integer("head_dim")}}};
    },
    .rows = {"q:S(a) kv:R -> y:S(e)"},
    .backward =
        [](BackwardScope& s) {
          s.emit({repeat_kv_bias_backward,
                  {s.output_gradient(0), s.input(0), s.input(1)},
                  {0, 1},
                  s.op().attrs,
                  Phase::weight_gradient});
        },
    .cost = streaming_cost(0),
    .examples = {{.name = "one_to_two",
                  .inputs = {f64({8}), f64({4})},
                  .attrs = {{"heads", 4}, {"kv_heads", 1}, {"head_dim", 2}, {"copies", 2}}}},
};

const OpDef repeat_kv_bias_backward{
    .name = "repeat_kv_bias_backward",
    .contract = "dq = the query rows of dy; dkv = for each key-value head the sum over its copies.",
    .operands = "dy[e], q[a], kv[c] -> dq[a], dkv[c]",
    .attrs = {"heads", "kv_heads", "head_dim", "copies"},
    .shape = [](const Attrs&, auto in) -> TensorTypes {
      return {in[1], in[2]};
    },
    .wide = {0, 1},
    .rows = {"dy:S(e) q:S(a) kv:R -> dq:S(a) dkv:P"},
    .cost = streaming_cost(1),
    .examples = {{.name = "one_to_two",
                  .inputs = {f64({16}), f64({8}), f64({4})},
                  .attrs = {{"heads", 4}, {"kv_heads", 1}, {"head_dim", 2}, {"copies", 2}}}},
};

}  // namespace sextant::ops
