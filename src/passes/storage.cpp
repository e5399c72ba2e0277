#include "passes/storage.h"

#include "ir/plan.h"

namespace sextant {

namespace {

void shard(Layout& layout, const Mesh& mesh) {
  for (std::string_view name : kShardAxes) {
    auto axis = mesh.find(name);
    if (!axis || layout.at(*axis) == sharded(0)) continue;
    layout.states[static_cast<size_t>(*axis)] = sharded(0);
    layout.order = with_axis_last(layout, *axis);
  }
}

}  // namespace

Layout stored_gradient_layout(const Layout& parameter, const Mesh& mesh, int zero) {
  Layout layout = gradient_layout(parameter);
  if (zero >= 2) shard(layout, mesh);
  return layout;
}

Layout update_layout(const Layout& parameter, const Mesh& mesh, int zero) {
  Layout layout = parameter;
  for (AxisState& state : layout.states)
    if (state == kReplicated) state = kInvariant;
  if (zero >= 1) shard(layout, mesh);
  return layout;
}

}  // namespace sextant
