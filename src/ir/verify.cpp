#include "ir/verify.h"

#include <algorithm>

#include "base/error.h"
#include "ir/signature.h"
#include "ir/verify_memory.h"

namespace sextant {

namespace {

bool is_given(const Value& value) {
  return is_persistent(value.kind) || value.kind == ValueKind::feed;
}

// Values are made before use and once; operand types are what the definition says.
class OrderCheck {
 public:
  OrderCheck(const std::vector<Value>& values, std::string_view after) : values_(values), after_(after) {
    for (const Value& value : values) made_.push_back(is_given(value));
  }

  void visit(const Op& op) {
    for (ValueId id : op.inputs)
      BUG_IF(!made_[static_cast<size_t>(id)], "after {}: {} ({}) reads %{} ({}) before it is made", after_, op.path,
             op.def->name, id, values_[static_cast<size_t>(id)].path);
    for (ValueId id : op.outputs) {
      BUG_IF(made_[static_cast<size_t>(id)], "after {}: %{} ({}) is made twice", after_, id,
             values_[static_cast<size_t>(id)].path);
      made_[static_cast<size_t>(id)] = true;
    }
    check_types(op);
  }

 private:
  void check_types(const Op& op) {
    TensorTypes inputs;
    for (ValueId id : op.inputs) inputs.push_back(type_of(values_[static_cast<size_t>(id)]));
    TensorTypes expected = infer_types(*op.def, op.attrs, inputs);
    BUG_IF(expected.size() != op.outputs.size(), "after {}: {} has {} outputs, its definition {}", after_, op.path,
           op.outputs.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      const Value& value = values_[static_cast<size_t>(op.outputs[i])];
      BUG_IF(!(type_of(value) == expected[i]), "after {}: %{} ({}) is {}{}, its definition says {}{}", after_, value.id,
             value.path, name_of(value.dtype), value.shape.text(), name_of(expected[i].dtype),
             expected[i].shape.text());
    }
  }

  const std::vector<Value>& values_;
  std::string_view after_;
  std::vector<bool> made_;
};

// In which order the op's operands are split along the axis.
ShardOrder order_of(const Graph& graph, const Op& op, int axis) {
  for (ValueId id : op.inputs)
    if (AxisState state = graph[id].layout.at(axis);
        state.kind == StateKind::sharded && state.order != ShardOrder::blocks)
      return state.order;
  return ShardOrder::plain;
}

bool row_holds(const Graph& graph, const Op& op, const LayoutRow& row, int axis) {
  for (size_t i = 0; i < op.inputs.size(); ++i)
    if (!(graph[op.inputs[i]].layout.at(axis) == row.inputs[i])) return false;
  for (size_t i = 0; i < op.outputs.size(); ++i)
    if (!(graph[op.outputs[i]].layout.at(axis) == row.outputs[i])) return false;
  return true;
}

// Forward ops follow one of their rows on every axis. Backward ops carry the duals by construction.
void check_rows(const Graph& graph, const Op& op, std::string_view after) {
  if (op.phase != Phase::forward || op.def->layout_rule == LayoutRule::free) return;
  std::vector<int> in, out;
  for (ValueId id : op.inputs) in.push_back(graph[id].shape.rank());
  for (ValueId id : op.outputs) out.push_back(graph[id].shape.rank());
  std::vector<LayoutRow> rows = layout_rows(*op.def, in, out);
  for (int axis = 0; axis < graph.mesh.axis_count(); ++axis) {
    if (graph.mesh.size(axis) == 1 || graph.mesh.role(axis) == AxisRole::pipeline) continue;
    ShardOrder order = order_of(graph, op, axis);
    bool held = std::any_of(rows.begin(), rows.end(),
                            [&](const LayoutRow& r) { return row_holds(graph, op, in_order(r, order), axis); });
    BUG_IF(!held, "after {}: {} ({}) follows no row of its definition on axis {}", after, op.path, op.def->name,
           graph.mesh.name(axis));
  }
}

// Along its data axes a parameter is replicated, or sharded in storage: only then is its gradient summed over them.
void check_data_axes(const Graph& graph, std::string_view after) {
  for (const Value& value : graph.values) {
    BUG_IF(value.kind != ValueKind::parameter && !value.data_axes.empty(),
           "after {}: {} is no parameter, and has data axes", after, value.path);
    for (int axis : value.data_axes) {
      StateKind kind = value.layout.at(axis).kind;
      BUG_IF(graph.mesh.size(axis) > 1 && kind != StateKind::replicated && kind != StateKind::sharded,
             "after {}: {} is {} on its data axis {}", after, value.path, value.layout.at(axis).text(),
             graph.mesh.name(axis));
    }
  }
}

void check_local_shapes(const Program& program, std::string_view after) {
  for (const Value& value : program.values)
    BUG_IF(!(value.local == local_shape(value.shape, value.layout, program.mesh)),
           "after {}: %{} ({}) has local shape {}", after, value.id, value.path, value.local.text());
}

void check_buffers(const Program& program, std::string_view after) {
  std::vector<bool> used(program.values.size(), false);
  for (const Region& region : program.regions)
    for (const Op& op : region.ops)
      for (const auto* ids : {&op.inputs, &op.outputs})
        for (ValueId id : *ids) used[static_cast<size_t>(id)] = true;
  for (const Value& value : program.values) {
    if (!used[static_cast<size_t>(value.id)]) continue;
    BUG_IF(value.buffer < 0, "after {}: %{} ({}) has no buffer", after, value.id, value.path);
    BUG_IF(program.buffers[static_cast<size_t>(value.buffer)].space != value.space,
           "after {}: %{} ({}) has a buffer in another space than the {}", after, value.id, value.path,
           name_of(value.space));
    BUG_IF(program.buffers[static_cast<size_t>(value.buffer)].bytes < value.local_bytes().n,
           "after {}: %{} ({}) does not fit its buffer", after, value.id, value.path);
  }
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const Buffer& b = program.buffers[i];
    BUG_IF(b.offset < 0 || b.offset + b.total_bytes() > program.arena(b.space).all,
           "after {}: buffer {} leaves the arena of the {}", after, i, name_of(b.space));
  }
}

// Only copies cross from one space to another, and the file is reached from the host alone.
void check_spaces(const Program& program, const Op& op, std::string_view after) {
  BUG_IF(is_file_copy(program, op) && space_of(program, op) == MemorySpace::device,
         "after {}: {} copies between the device and the file", after, op.path);
  if (op.def->between_spaces) return;
  MemorySpace space = space_of(program, op);
  for (const auto* ids : {&op.inputs, &op.outputs})
    for (ValueId id : *ids)
      BUG_IF(program[id].space != space, "after {}: {} ({}) is an op of the {}, and %{} ({}) is in another space",
             after, op.path, op.def->name, name_of(space), id, program[id].path);
}

}  // namespace

void verify(const Graph& graph, Stage stage, std::string_view after) {
  OrderCheck order(graph.values, after);
  check_data_axes(graph, after);
  for (const Op& op : graph.ops) {
    order.visit(op);
    if (stage >= Stage::inferred) check_rows(graph, op, after);
  }
}

void verify(const Program& program, Stage stage, std::string_view after) {
  OrderCheck order(program.values, after);
  for (const Region& region : program.regions)
    for (const Op& op : region.ops) {
      order.visit(op);
      if (stage >= Stage::planned) check_spaces(program, op, after);
    }
  if (stage >= Stage::partitioned) check_local_shapes(program, after);
  if (stage >= Stage::planned) check_buffers(program, after);
  if (stage >= Stage::final) verify_memory(program, after);
}

}  // namespace sextant
