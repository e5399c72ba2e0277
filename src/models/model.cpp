#include "models/model.h"

namespace sextant {

Graph build_model(const ModelSpec& spec, const Use& use, const Mesh& mesh) {
  return model_of(spec).build(spec, use, mesh);
}

int64_t parameter_count(const Graph& graph) {
  int64_t count = 0;
  for (const Value& value : graph.values)
    if (value.kind == ValueKind::parameter && value.is_trained()) count += value.shape.count();
  return count;
}

ActiveParameters active_parameters(const Graph& graph) {
  ActiveParameters active;
  active.all = parameter_count(graph);
  int64_t embedding = 0;
  for (const Op& op : graph.ops)
    for (ValueId id : op.inputs) {
      const Value& value = graph[id];
      if (value.kind != ValueKind::parameter) continue;
      if (op.attrs.has("experts")) {
        int64_t experts = op.attrs.integer("experts"), chosen = graph[op.inputs.back()].shape.last();
        active.all -= value.shape.count() / experts * (experts - chosen);
      }
      if (value.path == "embed.weight") embedding = value.shape.count();
    }
  bool tied = !graph.find("head.weight");
  active.without_embedding = active.all - (tied ? 0 : embedding);
  return active;
}

Mesh single_rank_mesh() {
  Mesh mesh;
  for (const AxisDef& axis : kAxes)
    if (!axis.only_if_split) mesh.axes.push_back({axis, 1});
  return mesh;
}

}  // namespace sextant
