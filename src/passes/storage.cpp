#include "passes/storage.h"

namespace sextant {

namespace {

// As ZeRO stores what belongs to the parameter.
void shard(Layout& layout, const Value& parameter, const Mesh& mesh) {
  for (int axis : parameter.data_axes) {
    if (!mesh.def(axis).zero_shards || layout.at(axis) == sharded(0)) continue;
    layout.states[static_cast<size_t>(axis)] = sharded(0);
    layout.order = with_axis_last(layout, axis);
  }
}

}  // namespace

Layout stored_gradient_layout(const Value& parameter, const Mesh& mesh, int zero) {
  Layout layout = gradient_layout(parameter.layout);
  if (zero >= 2) shard(layout, parameter, mesh);
  return layout;
}

Layout update_layout(const Value& parameter, const Mesh& mesh, int zero) {
  Layout layout = parameter.layout;
  for (AxisState& state : layout.states)
    if (state == kReplicated) state = kInvariant;
  if (zero >= 1) shard(layout, parameter, mesh);
  return layout;
}

}  // namespace sextant
