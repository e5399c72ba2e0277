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

void Builder::set_states(Layout& layout, AxisRole role, AxisState state) const {
  for (int axis : graph_.mesh.axes_with(role)) layout.states[static_cast<size_t>(axis)] = state;
}

AxisState Builder::sequence_state() const {
  if (parallel_.context == ContextMode::ulysses) return sharded(1);
  return parallel_.ring_order == RingOrder::striped ? striped(1) : zigzag(1);
}

ValueId Builder::parameter(const ParameterSpec& spec) {
  Layout layout = invariant_layout(graph_.mesh);
  // Ranks that use a weight on different data hold it as R, so that its gradient comes out as P and is summed once a
  // step.
  std::vector<int> data_axes = graph_.mesh.data_axes();
  for (int axis : data_axes) layout.states[static_cast<size_t>(axis)] = kReplicated;
  if (parallel_.sequence || spec.split == TensorSplit::copies) set_states(layout, AxisRole::tensor, kReplicated);
  if (spec.split == TensorSplit::outputs) set_states(layout, AxisRole::tensor, sharded(0));
  if (spec.split == TensorSplit::inputs) set_states(layout, AxisRole::tensor, sharded(1));
  if (spec.of == WeightOf::experts) {
    for (int axis = 0; axis < graph_.mesh.axis_count(); ++axis) {
      AxisState& state = layout.states[static_cast<size_t>(axis)];
      ExpertRole role = graph_.mesh.def(axis).experts;
      if (role == ExpertRole::expert) state = blocks(0);
      if (role == ExpertRole::data && graph_.mesh.role(axis) == AxisRole::tensor) state = kReplicated;
    }
    std::erase_if(data_axes, [&](int axis) { return graph_.mesh.def(axis).experts == ExpertRole::expert; });
  }
  for (int axis : data_axes) {
    if (parallel_.zero < 3 || spec.balance_speed || !graph_.mesh.def(axis).zero_shards) continue;
    layout.states[static_cast<size_t>(axis)] = sharded(0);
    layout.order = with_axis_last(layout, axis);
  }
  if (!spec.segments.empty()) layout.segments = {0, spec.segments};
  return graph_.add({.path = below(spec.name),
                     .kind = ValueKind::parameter,
                     .dtype = spec.balance_speed ? wide_of(dtype_) : dtype_,
                     .shape = spec.shape,
                     .layout = std::move(layout),
                     .data_axes = std::move(data_axes),
                     .init = spec.init,
                     .stored = spec.stored.path.empty()
                                   ? StoredIn{}
                                   : StoredIn{below(spec.stored.path), spec.stored.first_row, spec.stored.first_packed},
                     .packed_rows = spec.segments.empty() ? spec.packed : spec.segments,
                     .balance_speed = spec.balance_speed});
}

ValueId Builder::feed(std::string path, DType dtype, GlobalShape shape) {
  Layout layout = invariant_layout(graph_.mesh);
  if (shape.rank() == 0)
    for (int axis : graph_.mesh.data_axes()) layout.states[static_cast<size_t>(axis)] = kReplicated;
  if (shape.rank() >= 1) set_states(layout, AxisRole::data, sharded(0));
  if (shape.rank() >= 2) set_states(layout, AxisRole::context, sequence_state());
  return graph_.add({.path = std::move(path),
                     .kind = ValueKind::feed,
                     .dtype = dtype,
                     .shape = std::move(shape),
                     .layout = std::move(layout)});
}

ValueId Builder::feed_for_all(std::string path, DType dtype) {
  return graph_.add({.path = std::move(path),
                     .kind = ValueKind::feed,
                     .dtype = dtype,
                     .shape = {},
                     .layout = invariant_layout(graph_.mesh)});
}

ValueId Builder::cache(std::string path, GlobalShape shape) {
  Layout layout = invariant_layout(graph_.mesh);
  set_states(layout, AxisRole::data, sharded(0));
  set_states(layout, AxisRole::tensor, sharded(1));
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

ValueId Builder::pin(ValueId value, std::string_view name, const std::vector<std::pair<AxisRole, AxisState>>& states) {
  std::string text;
  for (const auto& [role, state] : states)
    for (int axis : graph_.mesh.axes_with(role))
      text += fmt::format("{}{}:{}", text.empty() ? "" : " ", graph_.mesh.name(axis), state.text());
  return text.empty() ? value : op(ops::redistribute, name, {value}, {{"pin", text}});
}

ValueId Builder::pin_axes(ValueId value, std::string_view name, const std::vector<std::pair<int, AxisState>>& states) {
  std::string text;
  for (const auto& [axis, state] : states)
    text += fmt::format("{}{}:{}", text.empty() ? "" : " ", graph_.mesh.name(axis), state.text());
  return text.empty() ? value : op(ops::redistribute, name, {value}, {{"pin", text}});
}

AxisState Builder::token_state(int axis) const {
  AxisRole role = graph_.mesh.role(axis);
  return role == AxisRole::data ? sharded(0) : role == AxisRole::context ? sequence_state() : sharded(1);
}

ValueId Builder::tokens_for_experts(ValueId value) {
  std::vector<std::pair<int, AxisState>> states;
  for (int axis : graph_.mesh.axes_with(AxisRole::tensor))
    states.emplace_back(axis, graph_.mesh.def(axis).experts == ExpertRole::tensor ? kReplicated : token_state(axis));
  return pin_axes(value, "tokens", states);
}

ValueId Builder::to_experts(ValueId rows) {
  std::vector<std::pair<int, AxisState>> states;
  for (int axis : graph_.mesh.axes_with(ExpertRole::expert)) states.emplace_back(axis, sharded(2));
  return pin_axes(rows, "to_experts", states);
}

ValueId Builder::from_experts(ValueId rows) {
  std::vector<std::pair<int, AxisState>> states;
  for (int axis : graph_.mesh.axes_with(ExpertRole::expert)) states.emplace_back(axis, token_state(axis));
  return pin_axes(rows, "from_experts", states);
}

ValueId Builder::gathered_for_experts(ValueId value) {
  std::vector<std::pair<int, AxisState>> states;
  for (int axis : graph_.mesh.axes_with(ExpertRole::expert)) states.emplace_back(axis, kReplicated);
  return pin_axes(value, "gathered_for_experts", states);
}

std::pair<int64_t, int64_t> Builder::token_groups() const {
  int64_t sequences = 1, positions = 1;
  for (int axis = 0; axis < graph_.mesh.axis_count(); ++axis) {
    AxisRole role = graph_.mesh.role(axis);
    bool splits = role != AxisRole::pipeline && graph_.mesh.def(axis).experts != ExpertRole::tensor;
    if (!splits || graph_.mesh.size(axis) == 1) continue;
    AxisState state = token_state(axis);
    (state.dim == 0 ? sequences : positions) *= graph_.mesh.size(axis) * (state.order == ShardOrder::zigzag ? 2 : 1);
  }
  return {sequences, positions};
}

ValueId Builder::residual(ValueId value) {
  return pin(value, "residual",
             {{AxisRole::data, sharded(0)},
              {AxisRole::context, sequence_state()},
              {AxisRole::tensor, parallel_.sequence ? sharded(1) : kInvariant}});
}

ValueId Builder::gathered(ValueId value) {
  return pin(value, "gathered", {{AxisRole::tensor, kReplicated}});
}

ValueId Builder::whole_sequences(ValueId value) {
  return pin(value, "whole_sequences", {{AxisRole::context, sharded(2)}});
}

ValueId Builder::on_whole_sequences(ValueId value) {
  return pin(value, "on_whole_sequences", {{AxisRole::context, kInvariant}, {AxisRole::tensor, kInvariant}});
}

ValueId Builder::split_sequences(ValueId value) {
  return pin(value, "split_sequences", {{AxisRole::context, sequence_state()}});
}

ValueId Builder::summed(ValueId value) {
  return pin(value, "summed",
             {{AxisRole::data, kInvariant}, {AxisRole::context, kInvariant}, {AxisRole::tensor, kInvariant}});
}

ValueId Builder::summed_over_sequence(ValueId value) {
  return pin(value, "summed", {{AxisRole::context, kInvariant}, {AxisRole::tensor, kInvariant}});
}

void Builder::fetch(ValueId value, std::string path) {
  graph_[value].kind = ValueKind::fetch;
  graph_[value].path = std::move(path);
}

}  // namespace sextant
