// head_loss: output head and cross-entropy in one op, so that the logits of all tokens never exist at once.
// For every row with target t ≥ 0: logits l = w·x, lse = log Σ exp(l), loss += lse − l[t] + z_loss·lse². Rows with a
// negative target do not count. The sum is not divided: the gradient that enters (1/tokens of the global batch) does
// that.
//
// Along v every rank has the logits of a part of the vocabulary. It first finds the log-sum-exp of its part (head_lse),
// the ranks exchange these (one number per token), and then each does its part with the whole log-sum-exp at hand
// (`parts`, with attr groups=how many); the loss of a token is counted by the rank that has its target. No row along h:
// a logit is a sum over all of it, and all logits of a token would have to cross.
#include "ir/graph.h"
#include "ops/ops.h"
#include "ops/shapes.h"
#include "ops/transfer.h"

namespace sextant::ops {

namespace {

// The GEMMs of a head: logits, and what their gradients need.
Gemm logits_of(std::span<const TensorType> in) {
  return {.rows = static_cast<double>(in[0].shape.rows()),
          .columns = static_cast<double>(in[1].shape[0]),
          .depth = static_cast<double>(in[0].shape.last())};
}

std::vector<Gemm> training_gemms(std::span<const TensorType> in) {
  Gemm l = logits_of(in);
  return {l,
          {.rows = l.rows, .columns = l.depth, .depth = l.columns},
          {.rows = l.columns, .columns = l.depth, .depth = l.rows}};
}

Cost head_cost(std::vector<Gemm> gemms, std::span<const TensorType> in, std::span<const TensorType> out) {
  Cost cost = gemms_cost(std::move(gemms), in, out);
  Gemm logits = logits_of(in);
  cost.inner = logits.rows * logits.columns;
  return cost;
}

// The op itself where the vocabulary is whole, else with the log-sum-exps of all parts as a further input.
std::vector<Op> exchange_lse(Graph& graph, const Op& op) {
  const Layout& w = graph[op.inputs[1]].layout;
  int64_t groups = 1;
  std::vector<int> axes;
  for (int axis : axes_of_dim(w, 0)) {
    if (graph.mesh.size(axis) == 1) continue;
    axes.push_back(axis);
    groups *= graph.mesh.size(axis);
  }
  if (groups == 1) return {op};

  Op lse = make_op(graph, head_lse, {op.inputs[0], op.inputs[1]}, {{"groups", groups}}, op.path + ".lse");
  Layout whole = graph[op.inputs[0]].layout;  // of x: dims b and s follow the new one
  for (AxisState& state : whole.states)
    if (state.kind == StateKind::sharded) ++state.dim;
  whole.segments = {};
  Layout split = whole;
  std::vector<std::string> names;
  for (int axis : axes) {
    split.states[static_cast<size_t>(axis)] = sharded(0);
    split.order = with_axis_last(split, axis);
    names.push_back(graph.mesh.name(axis));
  }
  whole.order = split.order;
  graph[lse.outputs[0]].layout = split;
  Op gather = make_op(graph, redistribute, {lse.outputs[0]}, {{"axes", names}, {"ranks", groups}, {"packed", 0}},
                      op.path + ".lse.moved");
  set_transfer(gather.attrs, Transfer::all_gather);
  graph[gather.outputs[0]].layout = whole;

  Op with_parts = op;
  bool total_last = op.attrs.integer_or("accumulate", 0) != 0;
  with_parts.inputs.insert(with_parts.inputs.end() - (total_last ? 1 : 0), gather.outputs[0]);
  with_parts.attrs.set("groups", groups);
  return {lse, gather, with_parts};
}

}  // namespace

// The backward op computes the loss too (it needs the logits anyway), so in training the forward op does not run.
const OpDef head_loss{
    .name = "head_loss",
    .contract = "loss = Σ over rows with target t >= 0 of lse − l[t] + z_loss·lse², l = w·x, lse = log Σ exp(l).",
    .operands = "x[b s h], w[v h], targets[b s], parts?[g b s] -> loss[]",
    .attrs = {"z_loss", "groups"},
    .shape = [](const Attrs&, auto in) -> TensorTypes {
      return {{in[0].dtype, {}}};
    },
    .wide = {0},
    .rows = {"b", "s", "x:R w:S(v) targets:R parts:R -> loss:P"},
    .localize = exchange_lse,
    .backward =
        [](BackwardScope& s) {
          s.emit({head_loss_backward,
                  {s.input(0), s.input(1), s.input(2), s.output_gradient(0)},
                  {1, 0, BackwardScope::kForwardOutput},
                  s.op().attrs});
        },
    .cost = [](const Attrs&, auto in, auto out) { return head_cost({logits_of(in)}, in, out); },
    .examples = {{.name = "plain",
                  .inputs = {f64({2, 4, 6}), f64({7, 6}), i32({2, 4})},
                  .attrs = {{"z_loss", 0.0}},
                  .integers_below = 7},
                 {.name = "z_loss",
                  .inputs = {f64({1, 5, 6}), f64({9, 6}), i32({1, 5})},
                  .attrs = {{"z_loss", 0.01}},
                  .integers_below = 9}},
};

const OpDef head_loss_backward{
    .name = "head_loss_backward",
    .contract =
        "With p = softmax(l): dl = dloss·(p·(1 + 2·z_loss·lse) − onehot(t)); dw = dlᵀ·x, dx = dl·w; and the loss.",
    .operands = "x[b s h], w[v h], targets[b s], dloss[], parts?[g b s] -> dw[v h], dx[b s h], loss[]",
    .attrs = {"z_loss", "groups"},
    .shape = [](const Attrs&, auto in) -> TensorTypes {
      return {in[1], in[0], {in[0].dtype, {}}};
    },
    .wide = {0, 2},
    .rows = {"b", "s", "x:R w:S(v) targets:R dloss:R parts:R -> dw:S(v) dx:P loss:P"},
    .localize = exchange_lse,
    .cost = [](const Attrs&, auto in, auto out) { return head_cost(training_gemms(in), in, out); },
    .accumulate = Accumulate::supported,
    .examples = {{.name = "plain",
                  .inputs = {f64({2, 4, 6}), f64({7, 6}), i32({2, 4}), f64({})},
                  .attrs = {{"z_loss", 0.0}},
                  .integers_below = 7}},
};

// Made by localize only; no gradient passes it. No row along b or s: infer never sees it, and the one row there is says
// what localize splits.
const OpDef head_lse{
    .name = "head_lse",
    .contract = "parts[i] = log Σ exp(w·x) over part i of the vocabulary.",
    .operands = "x[b s h], w[v h] -> parts[g b s]",
    .attrs = {"groups"},
    .shape = [](const Attrs& attrs, auto in) -> TensorTypes {
      return {{in[0].dtype, {attrs.integer("groups"), in[0].shape[0], in[0].shape[1]}}};
    },
    .wide = {0},
    .rows = {"x:R w:S(v) -> parts:S(g)"},
    .cost =
        [](const Attrs&, auto in, auto out) {
          Gemm logits = logits_of(in);
          logits.of = Gemm::Of::repeated;  // the loss computes them too
          return head_cost({logits}, in, out);
        },
    .recompute = Recompute::never,
    .examples = {{.name = "whole", .inputs = {f64({2, 4, 6}), f64({7, 6})}, .attrs = {{"groups", 1}}}},
};

}  // namespace sextant::ops
