#include "nn/builder.h"

namespace sextant {

Builder::Builder(std::string name, Mesh mesh, DType dtype) : dtype_(dtype) {
  graph_.name = std::move(name);
  graph_.mesh = std::move(mesh);
}

Builder::Scope::Scope(Builder& builder, std::string_view name, int block)
    : builder_(builder), outer_path_(builder.path_), outer_block_(builder.block_) {
  builder.path_ = builder.below(name);
  builder.block_ = block;
}

Builder::Scope::~Scope() {
  builder_.path_ = std::move(outer_path_);
  builder_.block_ = outer_block_;
}

void Builder::set_state(Layout& layout, std::string_view axis, AxisState state) const {
  if (auto at = graph_.mesh.find(axis)) layout.states[static_cast<size_t>(*at)] = state;
}

ValueId Builder::parameter(const ParameterSpec& spec) {
  Layout layout = invariant_layout(graph_.mesh);
  for (std::string_view data_axis : {"dp", "cp"}) set_state(layout, data_axis, kReplicated);
  if (spec.split == TensorSplit::outputs) set_state(layout, "tp", sharded(0));
  if (spec.split == TensorSplit::inputs) set_state(layout, "tp", sharded(1));
  if (!spec.segments.empty()) layout.segments = {0, spec.segments};
  return graph_.add({.path = below(spec.name), .kind = ValueKind::parameter, .dtype = dtype_, .shape = spec.shape,
                     .layout = std::move(layout), .init = spec.init});
}

ValueId Builder::feed(std::string path, DType dtype, GlobalShape shape) {
  Layout layout = invariant_layout(graph_.mesh);
  if (shape.rank() >= 1) set_state(layout, "dp", sharded(0));
  if (shape.rank() >= 2) set_state(layout, "cp", sharded(1));
  if (shape.rank() == 0)
    for (std::string_view data_axis : {"dp", "cp"}) set_state(layout, data_axis, kReplicated);
  return graph_.add({.path = std::move(path), .kind = ValueKind::feed, .dtype = dtype, .shape = std::move(shape),
                     .layout = std::move(layout)});
}

ValueId Builder::state(std::string path, GlobalShape shape) {
  return graph_.add({.path = std::move(path), .kind = ValueKind::state, .dtype = dtype_, .shape = std::move(shape)});
}

ValueId Builder::op(const OpDef& def, std::string_view name, std::vector<ValueId> inputs, Attrs attrs,
                    std::source_location where) {
  Op op = make_op(graph_, def, std::move(inputs), std::move(attrs), below(name));
  op.block = block_;
  op.where = where;
  graph_.ops.push_back(std::move(op));
  return graph_.ops.back().outputs[0];
}

ValueId Builder::residual(ValueId value) {
  ValueId pinned = op(ops::redistribute, "residual", {value});
  Layout layout = invariant_layout(graph_.mesh);
  set_state(layout, "dp", sharded(0));
  set_state(layout, "cp", sharded(1));
  graph_[pinned].layout = layout;
  return pinned;
}

void Builder::fetch(ValueId value, std::string path) {
  graph_[value].kind = ValueKind::fetch;
  graph_[value].path = std::move(path);
}

}  // namespace sextant
