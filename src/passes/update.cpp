#include "passes/update.h"

#include "base/error.h"
#include "ops/ops.h"
#include "passes/autodiff.h"
#include "passes/infer.h"

namespace sextant {

namespace {

ValueId append(Graph& graph, Op op) {
  op.phase = Phase::update;
  graph.ops.push_back(std::move(op));
  return graph.ops.back().outputs[0];
}

ValueId state_like(Graph& graph, ValueId parameter, std::string path) {
  const Value& p = graph[parameter];
  return graph.add({.path = std::move(path), .kind = ValueKind::state, .dtype = p.dtype, .shape = p.shape,
                    .layout = p.layout});
}

// A gradient that is partial over data ranks is summed once per step, here.
ValueId whole_gradient(Graph& graph, ValueId gradient) {
  Layout whole = graph[gradient].layout;
  for (AxisState& state : whole.states)
    if (state.kind == StateKind::partial) state = kInvariant;
  if (whole == graph[gradient].layout) return gradient;
  Op op = make_op(graph, ops::redistribute, {gradient}, {}, graph[gradient].path + ".whole");
  graph[op.outputs[0]].layout = whole;
  return append(graph, std::move(op));
}

}  // namespace

void append_update(Graph& graph, const AdamW& optimizer) {
  std::vector<std::pair<ValueId, ValueId>> pairs = parameter_gradients(graph);
  BUG_IF(pairs.empty(), "{} has no parameter to update", graph.name);
  DType dtype = graph[pairs[0].first].dtype;
  ValueId lr = graph.add({.path = "lr", .kind = ValueKind::feed, .dtype = dtype});
  ValueId step = graph.add({.path = "step", .kind = ValueKind::feed, .dtype = DType::i32});

  std::vector<ValueId> squares;
  for (auto& [parameter, gradient] : pairs) {
    gradient = whole_gradient(graph, gradient);
    squares.push_back(append(graph, make_op(graph, ops::sum_squares, {gradient}, {}, "norm." + graph[parameter].path)));
  }
  Op clip = make_op(graph, ops::clip_scale, squares, {{"clip", optimizer.clip}}, "clip");
  ValueId norm = clip.outputs[0], scale = clip.outputs[1];
  graph[norm].kind = ValueKind::fetch;
  graph[norm].path = "grad_norm";
  append(graph, std::move(clip));

  for (auto& [parameter, gradient] : pairs) {
    std::string path = graph[parameter].path;
    ValueId m = state_like(graph, parameter, "adam_m." + path);
    ValueId v = state_like(graph, parameter, "adam_v." + path);
    double decay = graph[parameter].shape.rank() >= 2 ? optimizer.weight_decay : 0;
    append(graph, make_op(graph, ops::adamw, {parameter, gradient, m, v, lr, scale, step},
                          {{"beta1", optimizer.beta1},
                           {"beta2", optimizer.beta2},
                           {"eps", optimizer.eps},
                           {"weight_decay", decay}},
                          "adamw." + path));
  }
  infer(graph, Phase::update);
}

}  // namespace sextant
