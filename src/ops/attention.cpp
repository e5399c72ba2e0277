// attention: causal softmax attention over a packed qkv row (heads query heads, kv_heads key and value heads; queries
// and keys are head_dim wide, values value_dim, which is head_dim where it is not given; query head h reads key head
// h·kv_heads/heads). Saves qkv, y and the log-sum-exp of each row, so that
// backward needs no s×s matrix. With `begins`, documents that share a sequence do not see each other: begins[b][i] is
// the position where the document of query i begins. With alibi=1 a key loses score with every position that it lies
// before its query, at a slope of the query head's own (Press et al. 2021); slopes go by the head's place among all
// heads of the model. `scale` is what scores are multiplied by, where it is not 1/sqrt(head_dim). With `window` a query
// sees so many keys at most, its own among them; with `chunk` those of its own chunk, where the sequence is cut into
// chunks of so many positions (Llama 4). With `keys` and the attrs `dropout` and `site`, weights are left out
// at random after the softmax (ops/dropout.cpp); the log-sum-exp is that of all of them. `sequence_documents` is how
// many documents a sequence has, on average, at most, for a kernel that is quicker up to there; it changes no result.
//
// Along e, heads are split: head counts in attrs are global, and a rank's packed rows say how many it has. Along s,
// localize writes the steps of a ring (attention_ring.cpp).
#include <optional>

#include "base/error.h"
#include "ir/graph.h"
#include "ops/attention_widths.h"
#include "ops/attention_window.h"
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

namespace {

enum class Pass : uint8_t { forward, backward };

// Causal: half of the s×s square. An upper bound with `begins`: what documents do not see of each other depends on the
// data. `y` tells how many heads are here: attrs count them over all ranks.
Cost attention_cost(const Attrs& attrs, std::span<const TensorType> in, std::span<const TensorType> out,
                    const GlobalShape& y, Pass pass) {
  double s = static_cast<double>(y[1]), value_dim = static_cast<double>(value_dim_of(attrs));
  AttentionWork work{.batch = static_cast<double>(y[0]),
                     .heads = static_cast<double>(y[2]) / value_dim,
                     .queries = s,
                     .keys = s,
                     .head_dim = static_cast<double>(attrs.integer("head_dim")),
                     .value_dim = value_dim,
                     .seen = share_seen(s, key_range_of(attrs)),
                     .backward = pass == Pass::backward};
  Cost cost{.flops = {work.flops()}, .attention = work};
  for (const TensorType& t : in) cost.read += t.bytes();
  for (const TensorType& t : out) cost.written += t.bytes();
  return cost;
}

// The ring along the one axis that splits the sequence.
struct Ring {
  std::string axis;
  int64_t ranks = 1;
  ShardOrder order = ShardOrder::plain;
};

Ring ring_of(const Graph& graph, ValueId qkv) {
  Ring ring;
  for (int axis : axes_of_dim(graph[qkv].layout, 1)) {
    if (graph.mesh.size(axis) == 1) continue;
    BUG_IF(ring.ranks > 1, "{}: two axes split the sequence of attention", graph[qkv].path);
    ring = {graph.mesh.name(axis), graph.mesh.size(axis), graph[qkv].layout.at(axis).order};
  }
  return ring;
}

// Where attention's operands that may be left out begin; backward takes them over.
constexpr size_t kOptional = 1;

// Writes the steps of one attention op.
class RingWriter {
 public:
  RingWriter(Graph& graph, const Op& op, ValueId qkv) : graph_(graph), op_(op), qkv_(qkv), ring_(ring_of(graph, qkv)) {}

  bool needed() const { return ring_.ranks > 1; }
  std::vector<Op> forward() {
    ValueId kv = own_keys_and_values();
    std::vector<ValueId> so_far;
    for (int64_t step = 0; step < ring_.ranks; ++step) {
      if (step > 0) kv = shift(kv);
      std::vector<ValueId> inputs{qkv_, kv};
      add_optional(inputs);
      inputs.insert(inputs.end(), so_far.begin(), so_far.end());
      so_far = add_step(attention_step, std::move(inputs), step, {op_.outputs[0], op_.outputs[1]});
    }
    ops_.back().outputs = op_.outputs;
    return std::move(ops_);
  }

  // The gradient of a block of keys travels with it, and arrives at home one step after the block's last visit.
  std::vector<Op> backward() {
    ValueId kv = own_keys_and_values();
    std::vector<ValueId> so_far;
    for (int64_t step = 0; step < ring_.ranks; ++step) {
      if (step > 0) {
        kv = shift(kv);
        so_far[1] = shift(so_far[1]);
      }
      std::vector<ValueId> inputs{op_.inputs[0], qkv_, op_.inputs[2], op_.inputs[3], kv};
      add_optional(inputs);
      inputs.insert(inputs.end(), so_far.begin(), so_far.end());
      so_far = add_step(attention_step_backward, std::move(inputs), step, {op_.inputs[0], kv});
    }
    Op join = make_op(graph_, join_qkv, {so_far[0], shift(so_far[1])}, op_.attrs, op_.path);
    join.outputs = op_.outputs;
    ops_.push_back(std::move(join));
    return std::move(ops_);
  }

 private:
  // The input of that type: begins of documents are i32, keys of dropout i64.
  std::optional<ValueId> input_of(DType dtype) const {
    for (ValueId id : op_.inputs)
      if (graph_[id].dtype == dtype) return id;
    return std::nullopt;
  }

  void add_optional(std::vector<ValueId>& inputs) const {
    for (DType dtype : {DType::i32, DType::i64})
      if (auto input = input_of(dtype)) inputs.push_back(*input);
  }

  ValueId own_keys_and_values() {
    Op op = make_op(graph_, kv_of, {qkv_}, op_.attrs, op_.path + ".kv");
    Layout layout = graph_[qkv_].layout;
    layout.segments = {2, {key_width(op_.attrs), value_width(op_.attrs)}};
    graph_[op.outputs[0]].layout = layout;
    return append(std::move(op));
  }

  ValueId shift(ValueId value) {
    Op op = make_op(graph_, ring_shift, {value}, {{"axis", ring_.axis}}, graph_[value].path + ".next");
    graph_[op.outputs[0]].layout = graph_[value].layout;
    return append(std::move(op));
  }

  // One step; its two outputs are laid out like the values given.
  std::vector<ValueId> add_step(const OpDef& def, std::vector<ValueId> inputs, int64_t step,
                                const std::vector<ValueId>& like) {
    Attrs attrs = op_.attrs;
    attrs.set("step", step);
    attrs.set("axis", ring_.axis);
    if (!key_range_of(attrs).whole()) {
      attrs.set("ranks", ring_.ranks);
      if (ring_.order == ShardOrder::striped) attrs.set("striped", int64_t{1});
    }
    if (input_of(DType::i32)) attrs.set("documents", int64_t{1});
    if (&def == &attention_step_backward) attrs.set("backward", int64_t{1});
    Op op = make_op(graph_, def, std::move(inputs), attrs, fmt::format("{}.{}", op_.path, step));
    for (size_t i = 0; i < like.size(); ++i) graph_[op.outputs[i]].layout = graph_[like[i]].layout;
    std::vector<ValueId> outputs = op.outputs;
    append(std::move(op));
    return outputs;
  }

  ValueId append(Op op) {
    ops_.push_back(std::move(op));
    return ops_.back().outputs[0];
  }

  Graph& graph_;
  const Op& op_;
  ValueId qkv_;
  Ring ring_;
  std::vector<Op> ops_;
};

std::vector<Op> ring_forward(Graph& graph, const Op& op) {
  RingWriter writer(graph, op, op.inputs[0]);
  return writer.needed() ? writer.forward() : std::vector<Op>{op};
}

std::vector<Op> ring_backward(Graph& graph, const Op& op) {
  RingWriter writer(graph, op, op.inputs[1]);
  return writer.needed() ? writer.backward() : std::vector<Op>{op};
}

}  // namespace

const OpDef attention{
    .name = "attention",
    .contract =
        "y = softmax(c·q·kᵀ, causal)·v per head, c = scale, else 1/sqrt(head_dim); lse = log Σ exp of each row. "
        "Query i sees keys up to i, with begins from min(begins, i) on, with a window from i − window + 1 on, with "
        "a chunk from floor(i/chunk)·chunk on; with alibi the score of key j is less by slope(head)·(i − j). With "
        "dropout the softmax is multiplied by the mask that "
        "dropout has for (keys[b], site, head, i, j).",
    .operands = "qkv[b s e], begins?[b s], keys?[b] -> y[b s a], lse[b q s]",
    .attrs = {"heads", "kv_heads", "head_dim", "value_dim", "alibi", "scale", "window", "chunk", "dropout", "site",
              "sequence_documents"},
    .shape = [](const Attrs& attrs, auto in) -> TensorTypes {
      const GlobalShape& s = in[0].shape;
      return {{in[0].dtype, {s[0], s[1], output_width(attrs)}}, {in[0].dtype, {s[0], attrs.integer("heads"), s[1]}}};
    },
    .wide = {1},
    .rows = {"b", "s", "qkv:S(e) begins:R keys:R -> y:S(a) lse:S(q)"},
    .localize = ring_forward,
    .backward =
        [](BackwardScope& s) {
          std::vector<ValueId> inputs{s.output_gradient(0), s.input(0), s.output(0), s.output(1)};
          for (size_t i = kOptional; i < s.op().inputs.size(); ++i) inputs.push_back(s.op().inputs[i]);
          s.emit({attention_backward, std::move(inputs), {0}, s.op().attrs});
        },
    .cost = [](const Attrs& a, auto in, auto out) { return attention_cost(a, in, out, out[0].shape, Pass::forward); },
    .attends = true,
    .examples =
        {{.name = "gqa", .inputs = {f64({2, 6, 32})}, .attrs = {{"heads", 4}, {"kv_heads", 2}, {"head_dim", 4}}},
         {.name = "wide_keys",
          .inputs = {f64({2, 6, 44})},
          .attrs = {{"heads", 4}, {"kv_heads", 2}, {"head_dim", 6}, {"value_dim", 4}}},
         {.name = "wide_values",
          .inputs = {f64({1, 70, 18})},
          .attrs = {{"heads", 2}, {"kv_heads", 2}, {"head_dim", 2}, {"value_dim", 5}}},
         {.name = "mha_long", .inputs = {f64({1, 70, 12})}, .attrs = {{"heads", 2}, {"kv_heads", 2}, {"head_dim", 2}}},
         {.name = "alibi",
          .inputs = {f64({2, 12, 20})},
          .attrs = {{"heads", 6}, {"kv_heads", 2}, {"head_dim", 2}, {"alibi", 1}}},
         {.name = "scale",
          .inputs = {f64({2, 6, 32})},
          .attrs = {{"heads", 4}, {"kv_heads", 2}, {"head_dim", 4}, {"scale", 0.2}}},
         {.name = "window",
          .inputs = {f64({1, 80, 12})},
          .attrs = {{"heads", 2}, {"kv_heads", 2}, {"head_dim", 2}, {"window", 9}}},
         {.name = "chunk",
          .inputs = {f64({1, 80, 12})},
          .attrs = {{"heads", 2}, {"kv_heads", 2}, {"head_dim", 2}, {"chunk", 9}}},
         {.name = "chunk_and_documents",
          .inputs = {f64({2, 6, 32}), i32({2, 6})},
          .attrs = {{"heads", 4}, {"kv_heads", 2}, {"head_dim", 4}, {"chunk", 4}},
          .integers_below = 6},
         {.name = "window_and_documents",
          .inputs = {f64({2, 6, 32}), i32({2, 6})},
          .attrs = {{"heads", 4}, {"kv_heads", 2}, {"head_dim", 4}, {"window", 3}},
          .integers_below = 6},
         {.name = "dropout",
          .inputs = {f64({2, 12, 32}), i64({2})},
          .attrs = {{"heads", 4}, {"kv_heads", 2}, {"head_dim", 4}, {"dropout", 0.3}, {"site", 6}},
          .integers_below = 1000},
         {.name = "dropout_and_documents",
          .inputs = {f64({2, 6, 32}), i32({2, 6}), i64({2})},
          .attrs = {{"heads", 4}, {"kv_heads", 2}, {"head_dim", 4}, {"dropout", 0.3}, {"site", 6}},
          .integers_below = 6},
         {.name = "documents",
          .inputs = {f64({2, 6, 32}), i32({2, 6})},
          .attrs = {{"heads", 4}, {"kv_heads", 2}, {"head_dim", 4}},
          .integers_below = 6}},
};

const OpDef attention_backward{
    .name = "attention_backward",
    .contract =
        "With p = exp(q·kᵀ·c − lse), d = Σ dy·y: dv = pᵀ·dy, ds = p·(dy·vᵀ − d), dq = c·ds·k, dk = c·dsᵀ·q. "
        "p is 0 where attention's query does not see the key, and alibi's part of the score is in it. With dropout, p "
        "in "
        "dv and dy·vᵀ are multiplied by the mask.",
    .operands = "dy[b s a], qkv[b s e], y[b s a], lse[b q s], begins?[b s], keys?[b] -> dqkv[b s e]",
    .attrs = {"heads", "kv_heads", "head_dim", "value_dim", "alibi", "scale", "window", "chunk", "dropout", "site",
              "sequence_documents"},
    .rows = {"b", "s", "dy:S(a) qkv:S(e) y:S(a) lse:S(q) begins:R keys:R -> dqkv:S(e)"},
    .localize = ring_backward,
    .cost = [](const Attrs& a, auto in, auto out) { return attention_cost(a, in, out, in[0].shape, Pass::backward); },
    .examples = {{.name = "gqa",
                  .inputs = {f64({2, 6, 16}), f64({2, 6, 32}), f64({2, 6, 16}), f64({2, 4, 6})},
                  .attrs = {{"heads", 4}, {"kv_heads", 2}, {"head_dim", 4}}},
                 {.name = "wide_keys",
                  .inputs = {f64({2, 6, 16}), f64({2, 6, 44}), f64({2, 6, 16}), f64({2, 4, 6})},
                  .attrs = {{"heads", 4}, {"kv_heads", 2}, {"head_dim", 6}, {"value_dim", 4}}},
                 {.name = "alibi",
                  .inputs = {f64({2, 12, 12}), f64({2, 12, 20}), f64({2, 12, 12}), f64({2, 6, 12})},
                  .attrs = {{"heads", 6}, {"kv_heads", 2}, {"head_dim", 2}, {"alibi", 1}}},
                 {.name = "scale",
                  .inputs = {f64({2, 6, 16}), f64({2, 6, 32}), f64({2, 6, 16}), f64({2, 4, 6})},
                  .attrs = {{"heads", 4}, {"kv_heads", 2}, {"head_dim", 4}, {"scale", 0.2}}},
                 {.name = "window",
                  .inputs = {f64({1, 80, 4}), f64({1, 80, 12}), f64({1, 80, 4}), f64({1, 2, 80})},
                  .attrs = {{"heads", 2}, {"kv_heads", 2}, {"head_dim", 2}, {"window", 9}}},
                 {.name = "chunk",
                  .inputs = {f64({1, 80, 4}), f64({1, 80, 12}), f64({1, 80, 4}), f64({1, 2, 80})},
                  .attrs = {{"heads", 2}, {"kv_heads", 2}, {"head_dim", 2}, {"chunk", 9}}},
                 {.name = "dropout",
                  .inputs = {f64({2, 12, 16}), f64({2, 12, 32}), f64({2, 12, 16}), f64({2, 4, 12}), i64({2})},
                  .attrs = {{"heads", 4}, {"kv_heads", 2}, {"head_dim", 4}, {"dropout", 0.3}, {"site", 6}},
                  .integers_below = 1000},
                 {.name = "documents",
                  .inputs = {f64({2, 6, 16}), f64({2, 6, 32}), f64({2, 6, 16}), f64({2, 4, 6}), i32({2, 6})},
                  .attrs = {{"heads", 4}, {"kv_heads", 2}, {"head_dim", 4}},
                  .integers_below = 6}},
};

}  // namespace sextant::ops
