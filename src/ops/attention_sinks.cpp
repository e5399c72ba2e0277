// sink_attention: attention in which every head has a logit of its own, the sink, that joins the softmax of each row
// and has no value (gpt-oss): the weights of the keys sum to less than 1.
//
// With lse the log-sum-exp of a row's scores without the sink, lse' = log(exp(lse) + exp(sink)) and y' = exp(lse −
// lse')·y. So localize writes it as attention, whatever form that takes, and join_sinks behind it. Backward is that of
// attention with y' and lse' in place of y and lse: p = exp(score − lse') and d = Σ dy·y' are what the formula needs.
//
// Along e, heads are split, with those of y and the sinks.
#include <span>

#include "ir/graph.h"
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

namespace {

// Operands of sink_attention behind the sinks are attention's optional ones.
constexpr size_t kSinks = 1;

template <class Item>
std::vector<Item> without_sinks(std::span<const Item> inputs) {
  std::vector<Item> rest(inputs.begin(), inputs.end());
  rest.erase(rest.begin() + kSinks);
  return rest;
}

std::vector<Op> attention_and_join(Graph& graph, const Op& op) {
  Op plain = make_op(graph, attention, without_sinks(std::span<const ValueId>(op.inputs)), op.attrs, op.path + ".keys");
  for (size_t i = 0; i < plain.outputs.size(); ++i) graph[plain.outputs[i]].layout = graph[op.outputs[i]].layout;
  Op join = make_op(graph, join_sinks, {plain.outputs[0], plain.outputs[1], op.inputs[kSinks]}, {}, op.path + ".sinks");
  join.outputs = op.outputs;
  std::vector<Op> ops = attention.localize(graph, plain);
  ops.push_back(std::move(join));
  return ops;
}

}  // namespace

const OpDef sink_attention{
    .name = "sink_attention",
    .contract =
        "y = attention in which the softmax of each row has one more score, sinks[head], that has no value; lse = log "
        "of the sum with it. Everything else as in attention.",
    .operands = "qkv[b s e], sinks[q], begins?[b s], keys?[b] -> y[b s a], lse[b q s]",
    .attrs = {"heads", "kv_heads", "head_dim", "alibi", "scale", "window", "dropout", "site"},
    .shape = [](const Attrs& attrs, auto in) -> TensorTypes {
      const GlobalShape& s = in[0].shape;
      return {{in[0].dtype, {s[0], s[1], attrs.integer("heads") * attrs.integer("head_dim")}},
              {in[0].dtype, {s[0], attrs.integer("heads"), s[1]}}};
    },
    .wide = {1},
    .rows = {"b", "s", "qkv:S(e) sinks:S(q) begins:R keys:R -> y:S(a) lse:S(q)"},
    .localize = attention_and_join,
    .backward =
        [](BackwardScope& s) {
          ValueId dy = s.output_gradient(0);
          std::vector<ValueId> inputs{dy, s.input(0), s.output(0), s.output(1)};
          for (size_t i = kSinks + 1; i < s.op().inputs.size(); ++i) inputs.push_back(s.op().inputs[i]);
          if (s.needs_gradient(0)) s.emit({attention_backward, std::move(inputs), {0}, s.op().attrs});
          if (s.needs_gradient(1))
            s.emit({sinks_gradient, {dy, s.output(0), s.output(1), s.input(1)}, {1}, {}, Phase::weight_gradient});
        },
    .cost = [](const Attrs& a, auto in, auto out) { return attention.cost(a, without_sinks(in), out); },
    .attends = true,
    .examples = {{.name = "gqa",
                  .inputs = {f64({2, 6, 32}), f64({4})},
                  .attrs = {{"heads", 4}, {"kv_heads", 2}, {"head_dim", 4}}},
                 {.name = "window",
                  .inputs = {f64({1, 80, 12}), f64({2})},
                  .attrs = {{"heads", 2}, {"kv_heads", 2}, {"head_dim", 2}, {"window", 9}}},
                 {.name = "documents",
                  .inputs = {f64({2, 6, 32}), f64({4}), i32({2, 6})},
                  .attrs = {{"heads", 4}, {"kv_heads", 2}, {"head_dim", 4}},
                  .integers_below = 6},
                 {.name = "dropout",
                  .inputs = {f64({2, 12, 32}), f64({4}), i64({2})},
                  .attrs = {{"heads", 4}, {"kv_heads", 2}, {"head_dim", 4}, {"dropout", 0.3}, {"site", 6}},
                  .integers_below = 1000}},
};

const OpDef join_sinks{
    .name = "join_sinks",
    .contract = "lse' = log(exp(lse) + exp(sinks[head])); y' = exp(lse − lse')·y.",
    .operands = "y[b s a], lse[b q s], sinks[q] -> y_with[b s a], lse_with[b q s]",
    .shape = [](const Attrs&, auto in) -> TensorTypes {
      return {in[0], in[1]};
    },
    .rows = {"b", "s", "y:S(a) lse:S(q) sinks:S(q) -> y_with:S(a) lse_with:S(q)"},
    .cost = streaming_cost(1),
    .alias = {{.output = 0, .input = 0}, {.output = 1, .input = 1}},
    .examples = {{.name = "four_heads", .inputs = {f64({2, 6, 16}), f64({2, 4, 6}), f64({4})}}},
};

const OpDef sinks_gradient{
    .name = "sinks_gradient",
    .contract = "dsinks[head] = −Σ over rows of exp(sinks[head] − lse)·Σ dy·y, with the sinks in y and lse.",
    .operands = "dy[b s a], y[b s a], lse[b q s], sinks[q] -> dsinks[q]",
    .shape = [](const Attrs&, auto in) -> TensorTypes { return {in[3]}; },
    .wide = {0},
    .rows = {"b", "s", "dy:S(a) y:S(a) lse:S(q) sinks:S(q) -> dsinks:S(q)"},
    .cost = streaming_cost(0),
    .examples = {{.name = "four_heads", .inputs = {f64({2, 6, 16}), f64({2, 6, 16}), f64({2, 4, 6}), f64({4})}}},
};

}  // namespace sextant::ops
