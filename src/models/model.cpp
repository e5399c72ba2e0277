#include "models/model.h"

namespace sextant {

Graph build_model(const ModelSpec& spec, const Use& use, const Mesh& mesh) {
  return model_of(spec).build(spec, use, mesh);
}

int64_t parameter_count(const Graph& graph) {
  int64_t count = 0;
  for (const Value& value : graph.values)
    if (value.kind == ValueKind::parameter) count += value.shape.count();
  return count;
}

Mesh single_rank_mesh() {
  Mesh mesh;
  for (const AxisDef& axis : kAxes)
    if (!axis.only_if_split) mesh.axes.push_back({axis, 1});
  return mesh;
}

}  // namespace sextant
