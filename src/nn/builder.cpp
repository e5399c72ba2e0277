#include "nn/builder.h"

#include <fmt/format.h>

namespace sextant {

Builder::Builder(std::string name, Mesh mesh, const Parallel& parallel, DType dtype)
    : parallel_(parallel), dtype_(dtype) {
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

int Builder::axis_size(std::string_view axis) const {
  auto at = graph_.mesh.find(axis);
  return at ? graph_.mesh.size(*at) : 1;
}

AxisState Builder::sequence_state() const {
  return parallel_.context == ContextMode::ring ? zigzag(1) : sharded(1);
}

ValueId Builder::parameter(const ParameterSpec& spec) {
  Layout layout = invariant_layout(graph_.mesh);
  // Ranks that use a weight on different data hold it as R, so that its gradient comes out as P and is summed once a
  // step.
  for (std::string_view axis : kDataAxes) set_state(layout, axis, kReplicated);
  if (parallel_.sequence || spec.split == TensorSplit::copies) set_state(layout, "tp", kReplicated);
  if (spec.split == TensorSplit::outputs) set_state(layout, "tp", sharded(0));
  if (spec.split == TensorSplit::inputs) set_state(layout, "tp", sharded(1));
  if (parallel_.zero == 3)
    for (std::string_view axis : kShardAxes) {
      set_state(layout, axis, sharded(0));
      if (auto at = graph_.mesh.find(axis)) layout.order = with_axis_last(layout, *at);
    }
  if (!spec.segments.empty()) layout.segments = {0, spec.segments};
  return graph_.add({.path = below(spec.name),
                     .kind = ValueKind::parameter,
                     .dtype = dtype_,
                     .shape = spec.shape,
                     .layout = std::move(layout),
                     .init = spec.init,
                     .stored = spec.stored.path.empty()
                                   ? StoredIn{}
                                   : StoredIn{below(spec.stored.path), spec.stored.first_row, spec.stored.first_packed},
                     .packed_rows = spec.segments.empty() ? spec.packed : spec.segments});
}

ValueId Builder::feed(std::string path, DType dtype, GlobalShape shape) {
  Layout layout = invariant_layout(graph_.mesh);
  if (shape.rank() == 0)
    for (std::string_view axis : kDataAxes) set_state(layout, axis, kReplicated);
  if (shape.rank() >= 1)
    for (std::string_view axis : {"dp_out", "dp"}) set_state(layout, axis, sharded(0));
  if (shape.rank() >= 2) set_state(layout, "cp", sequence_state());
  return graph_.add({.path = std::move(path),
                     .kind = ValueKind::feed,
                     .dtype = dtype,
                     .shape = std::move(shape),
                     .layout = std::move(layout)});
}

ValueId Builder::cache(std::string path, GlobalShape shape) {
  Layout layout = invariant_layout(graph_.mesh);
  for (std::string_view axis : {"dp_out", "dp"}) set_state(layout, axis, sharded(0));
  set_state(layout, "tp", sharded(1));
  return graph_.add({.path = std::move(path),
                     .kind = ValueKind::cache,
                     .dtype = dtype_,
                     .shape = std::move(shape),
                     .layout = std::move(layout)});
}

ValueId Builder::op(const OpDef& def, std::string_view name, std::vector<ValueId> inputs, Attrs attrs,
                    std::source_location where) {
  Op op = make_op(graph_, def, std::move(inputs), std::move(attrs), below(name));
  op.block = block_;
  op.where = where;
  graph_.ops.push_back(std::move(op));
  return graph_.ops.back().outputs[0];
}

ValueId Builder::pin(ValueId value, std::string_view name,
                     const std::vector<std::pair<std::string_view, AxisState>>& states) {
  std::string text;
  for (const auto& [axis, state] : states)
    if (graph_.mesh.find(axis)) text += fmt::format("{}{}:{}", text.empty() ? "" : " ", axis, state.text());
  return text.empty() ? value : op(ops::redistribute, name, {value}, {{"pin", text}});
}

ValueId Builder::residual(ValueId value) {
  return pin(value, "residual",
             {{"dp_out", sharded(0)},
              {"dp", sharded(0)},
              {"cp", sequence_state()},
              {"tp", parallel_.sequence ? sharded(1) : kInvariant}});
}

ValueId Builder::gathered(ValueId value) {
  return pin(value, "gathered", {{"tp", kReplicated}});
}

ValueId Builder::whole_sequences(ValueId value) {
  return pin(value, "whole_sequences", {{"cp", sharded(2)}});
}

ValueId Builder::split_sequences(ValueId value) {
  return pin(value, "split_sequences", {{"cp", sequence_state()}});
}

void Builder::fetch(ValueId value, std::string path) {
  graph_[value].kind = ValueKind::fetch;
  graph_[value].path = std::move(path);
}

}  // namespace sextant
