// Attention over a sequence that is split among the ranks of an axis. Each rank keeps its queries; keys and values
// travel around the ring, and every rank adds to its output what it finds in the block that visits it. In zigzag order
// each rank has one early and one late piece of the sequence, so that all have the same causal work at every step. As
// stripes (Brandon et al. 2023) each has every n-th position, so that this holds inside every document too.
//
// localize (attention.cpp) writes these ops; nothing else does, and no gradient passes them. Rows: none but the implied
// ones along dims that attention has rows for; the ring itself is not a layout. Attr `step`: the block that visits is
// that of the rank `step` places back along `axis`.
//
// No row along a, c, e, q, s or t: infer never sees these ops, they are the local work of attention's row along s. No
// row but any state as it is for ring_shift: it sends what the rank holds.
#include <algorithm>

#include "ops/attention_widths.h"
#include "ops/attention_window.h"
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

namespace {

int64_t kv_width(const Attrs& attrs) {
  return key_width(attrs) + value_width(attrs);
}

// Of a rank's queries and the keys that visit it.
double share_of_step(const Attrs& attrs, int64_t positions) {
  auto own = static_cast<double>(positions);
  KeyRange range = key_range_of(attrs);
  int64_t step = attrs.integer("step");
  if (range.whole()) return step == 0 ? (own + 1) / (2 * own) : 0.5;
  int64_t ranks = attrs.integer_or("ranks", 1), piece = std::max<int64_t>(1, positions / 2);
  // Every stripe sees as much of every other as the sequence sees of itself.
  if (attrs.has("striped")) return share_seen(own * static_cast<double>(ranks), range);
  // With a window or chunks ranks differ in what they see at a step: the mean over them, each with an early and a late
  // piece.
  double pairs = 0;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    int64_t visitor = (rank - step + ranks) % ranks;
    for (int64_t q : {rank, 2 * ranks - 1 - rank})
      for (int64_t k : {visitor, 2 * ranks - 1 - visitor})
        if (k <= q) pairs += seen_pairs(piece, piece, q * piece, k * piece, range);
  }
  return pairs / static_cast<double>(ranks) / (own * own);
}

// In zigzag order half of a block of queries sees a block of another rank, and its own as in attention: the steps of
// all ranks together are the whole causal square.
Cost step_cost(const Attrs& attrs, std::span<const TensorType> in, std::span<const TensorType> out) {
  bool backward = attrs.has("backward");
  const GlobalShape &y = backward ? in[0].shape : out[0].shape, &kv = backward ? in[4].shape : in[1].shape;
  double value_dim = static_cast<double>(value_dim_of(attrs));
  AttentionWork work{.batch = static_cast<double>(y[0]),
                     .heads = static_cast<double>(y[2]) / value_dim,
                     .queries = static_cast<double>(y[1]),
                     .keys = static_cast<double>(kv[1]),
                     .head_dim = static_cast<double>(attrs.integer("head_dim")),
                     .value_dim = value_dim,
                     .seen = share_of_step(attrs, y[1]),
                     .backward = backward};
  Cost cost{.flops = {work.flops()}, .attention = work};
  for (const TensorType& t : in) cost.read += t.bytes();
  for (const TensorType& t : out) cost.written += t.bytes();
  return cost;
}

// From the second step on, the op adds onto what the step before it made.
std::function<std::vector<Alias>(const Attrs&)> adds_onto(int first_input) {
  return [first_input](const Attrs& attrs) -> std::vector<Alias> {
    if (attrs.integer("step") == 0) return {};
    // Behind the begins of documents and the keys of dropout.
    int first = first_input + (attrs.has("documents") ? 1 : 0) + (attrs.has("dropout") ? 1 : 0);
    return {{.output = 0, .input = first, .rule = Alias::Rule::must},
            {.output = 1, .input = first + 1, .rule = Alias::Rule::must}};
  };
}

}  // namespace

const OpDef kv_of{
    .name = "kv_of",
    .contract = "kv = the key and value part of packed rows.",
    .operands = "qkv[b s e] -> kv[b s c]",
    .attrs = {"heads", "kv_heads", "head_dim", "value_dim", "alibi", "scale", "window", "chunk", "dropout", "site"},
    .shape = [](const Attrs& attrs, auto in) -> TensorTypes {
      return {{in[0].dtype, {in[0].shape[0], in[0].shape[1], kv_width(attrs)}}};
    },
    .rows = {"b", "s"},
    .cost = [](const Attrs&, auto, auto out) { return Cost{.read = out[0].bytes(), .written = out[0].bytes()}; },
    .examples = {{.name = "gqa",
                  .inputs = {f64({2, 6, 32})},
                  .attrs = {{"heads", 4}, {"kv_heads", 2}, {"head_dim", 4}}}},
};

const OpDef ring_shift{
    .name = "ring_shift",
    .contract = "y = x of the previous rank along `axis`; x goes to the next one.",
    .operands = "x[*] -> y[*]",
    .attrs = {"axis"},
    .layout_rule = LayoutRule::free,
    .cost = [](const Attrs&, auto in, auto out) { return Cost{.read = in[0].bytes(), .written = out[0].bytes()}; },
    .message =
        [](const Attrs& a, auto in, auto) {
          return Message{.kind = Collective::shift, .axes = {a.text_or("axis", "")}, .bytes = in[0].bytes()};
        },
    .recompute = Recompute::never,
    .examples = {{.name = "alone", .inputs = {f64({3, 5})}, .attrs = {{"axis", std::string("cp")}}}},
};

const OpDef attention_step{
    .name = "attention_step",
    .contract =
        "y, lse = attention over the keys seen so far and those of kv: y0 and y_block weighted by exp(lse0), "
        "exp(lse_block). begins are positions in the whole sequence.",
    .operands = "qkv[b s e], kv[b t c], begins?[b s], keys?[b], y0?[b s a], lse0?[b q s] -> y[b s a], lse[b q s]",
    .attrs = {"heads", "kv_heads", "head_dim", "value_dim", "alibi", "scale", "window", "chunk", "dropout", "site",
              "documents", "step", "axis", "ranks", "striped"},
    .shape = [](const Attrs& attrs, auto in) -> TensorTypes {
      const GlobalShape& s = in[0].shape;
      return {{in[0].dtype, {s[0], s[1], output_width(attrs)}}, {in[0].dtype, {s[0], attrs.integer("heads"), s[1]}}};
    },
    .wide = {1},
    .rows = {"b"},
    .cost = [](const Attrs& a, auto in, auto out) { return step_cost(a, in, out); },
    .alias_by_attrs = adds_onto(2),
    .recompute = Recompute::never,
    .examples = {{.name = "first",
                  .inputs = {f64({2, 6, 32}), f64({2, 6, 16})},
                  .attrs = {{"heads", 4}, {"kv_heads", 2}, {"head_dim", 4}, {"step", 0}, {"axis", std::string("cp")}}},
                 {.name = "wide_keys",
                  .inputs = {f64({2, 6, 44}), f64({2, 6, 20})},
                  .attrs = {{"heads", 4},
                            {"kv_heads", 2},
                            {"head_dim", 6},
                            {"value_dim", 4},
                            {"step", 0},
                            {"axis", std::string("cp")}}},
                 {.name = "documents",
                  .inputs = {f64({2, 6, 32}), f64({2, 6, 16}), i32({2, 6})},
                  .attrs = {{"heads", 4},
                            {"kv_heads", 2},
                            {"head_dim", 4},
                            {"documents", 1},
                            {"step", 0},
                            {"axis", std::string("cp")}},
                  .integers_below = 6}},
};

const OpDef attention_step_backward{
    .name = "attention_step_backward",
    .contract =
        "What the keys of kv add to dq, and what the queries add to its dkv (dq0, dkv0: what is there already).",
    .operands =
        "dy[b s a], qkv[b s e], y[b s a], lse[b q s], kv[b t c], begins?[b s], keys?[b], dq0?[b s f], dkv0?[b t c] -> "
        "dq[b s f], dkv[b t c]",
    .attrs = {"heads", "kv_heads", "head_dim", "value_dim", "alibi", "scale", "window", "chunk", "dropout", "site",
              "documents", "step", "axis", "ranks", "striped", "backward"},
    .shape = [](const Attrs& attrs, auto in) -> TensorTypes {
      const GlobalShape& dy = in[0].shape;
      return {{in[0].dtype, {dy[0], dy[1], query_width(attrs)}}, in[4]};
    },
    .rows = {"b"},
    .cost = [](const Attrs& a, auto in, auto out) { return step_cost(a, in, out); },
    .alias_by_attrs = adds_onto(5),
    .recompute = Recompute::never,
    .examples = {{.name = "first",
                  .inputs = {f64({2, 6, 16}), f64({2, 6, 32}), f64({2, 6, 16}), f64({2, 4, 6}), f64({2, 6, 16})},
                  .attrs = {{"heads", 4},
                            {"kv_heads", 2},
                            {"head_dim", 4},
                            {"step", 0},
                            {"axis", std::string("cp")},
                            {"backward", 1}}},
                 {.name = "wide_keys",
                  .inputs = {f64({2, 6, 16}), f64({2, 6, 44}), f64({2, 6, 16}), f64({2, 4, 6}), f64({2, 6, 20})},
                  .attrs = {{"heads", 4},
                            {"kv_heads", 2},
                            {"head_dim", 6},
                            {"value_dim", 4},
                            {"step", 0},
                            {"axis", std::string("cp")},
                            {"backward", 1}}},
                 {.name = "documents",
                  .inputs = {f64({2, 6, 16}), f64({2, 6, 32}), f64({2, 6, 16}), f64({2, 4, 6}), f64({2, 6, 16}),
                             i32({2, 6})},
                  .attrs = {{"heads", 4},
                            {"kv_heads", 2},
                            {"head_dim", 4},
                            {"documents", 1},
                            {"step", 0},
                            {"axis", std::string("cp")},
                            {"backward", 1}},
                  .integers_below = 6}},
};

const OpDef join_qkv{
    .name = "join_qkv",
    .contract = "qkv = packed rows of q, and k and v.",
    .operands = "q[b s a], kv[b s c] -> qkv[b s e]",
    .attrs = {"heads", "kv_heads", "head_dim", "value_dim", "alibi", "scale", "window", "chunk", "dropout", "site"},
    .shape = [](const Attrs& attrs, auto in) -> TensorTypes {
      return {{in[0].dtype, {in[0].shape[0], in[0].shape[1], query_width(attrs) + kv_width(attrs)}}};
    },
    .rows = {"b", "s"},
    .cost = streaming_cost(0),
    .examples = {{.name = "gqa",
                  .inputs = {f64({2, 6, 16}), f64({2, 6, 16})},
                  .attrs = {{"heads", 4}, {"kv_heads", 2}, {"head_dim", 4}}}},
};

}  // namespace sextant::ops
