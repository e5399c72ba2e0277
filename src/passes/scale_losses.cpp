#include "passes/scale_losses.h"

#include "ops/ops.h"

namespace sextant {

void scale_losses(Graph& graph, const LossScaling& scaling, std::vector<Loss>& losses) {
  std::vector<int> made_by = producers(graph);
  auto state = [&](std::string_view path, DType dtype) {
    return graph.add({.path = std::string(path),
                      .kind = ValueKind::state,
                      .dtype = dtype,
                      .shape = {},
                      .layout = invariant_layout(graph.mesh)});
  };
  ValueId scale = state(kLossScalePath, graph[losses.front().seed].dtype);
  state(kGoodStepsPath, DType::i32);
  for (Loss& loss : losses) {
    int stage = graph.ops[static_cast<size_t>(made_by[static_cast<size_t>(loss.loss)])].stage;
    Op op = make_op(graph, ops::scale_seed, {loss.seed, scale}, {{"initial", scaling.initial}},
                    graph[loss.loss].path + ".scaled_seed");
    op.stage = stage;
    loss.seed = op.outputs[0];
    graph.ops.push_back(std::move(op));
  }
}

}  // namespace sextant
