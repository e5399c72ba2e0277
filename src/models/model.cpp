#include "models/model.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace sextant {

Graph build_model(const ModelSpec& spec, const Use& use, const Mesh& mesh) {
  int64_t seen = std::max(use.seq, use.cache_positions);
  if (spec.window > 0 && seen > spec.window)
    throw UserError({.place = "model.window",
                     .got = fmt::format("{} positions are more than the window of {}: sliding-window attention is not "
                                        "supported",
                                        seen, spec.window),
                     .expected = fmt::format("at most {}", spec.window),
                     .hint = "ask for a shorter sequence or context"});
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
