#include "ir/graph.h"

#include "base/error.h"
#include "ir/signature.h"

namespace sextant {

ValueId Graph::add(Value value) {
  value.id = static_cast<ValueId>(values.size());
  if (value.layout.states.empty()) value.layout = invariant_layout(mesh);
  values.push_back(std::move(value));
  return values.back().id;
}

const Value* Graph::find(std::string_view path) const {
  for (const Value& value : values)
    if (value.path == path) return &value;
  return nullptr;
}

TensorType type_of(const Value& value) {
  return {value.dtype, value.shape};
}

TensorTypes types_of(const Graph& graph, const std::vector<ValueId>& ids) {
  TensorTypes types;
  for (ValueId id : ids) types.push_back(type_of(graph[id]));
  return types;
}

Op make_op(Graph& graph, const OpDef& def, std::vector<ValueId> inputs, Attrs attrs, std::string path) {
  TensorTypes types = infer_types(def, attrs, types_of(graph, inputs));
  const Signature& signature = signature_of(def);
  Op op{.def = &def, .attrs = std::move(attrs), .inputs = std::move(inputs), .path = std::move(path)};
  for (size_t i = 0; i < types.size(); ++i) {
    std::string name = types.size() == 1 ? op.path : fmt::format("{}.{}", op.path, signature.outputs[i].name);
    op.outputs.push_back(graph.add({.path = std::move(name), .dtype = types[i].dtype, .shape = types[i].shape}));
  }
  return op;
}

std::vector<int> producers(const Graph& graph) {
  std::vector<int> made_by(graph.values.size(), -1);
  for (size_t i = 0; i < graph.ops.size(); ++i)
    for (ValueId id : graph.ops[i].outputs) made_by[static_cast<size_t>(id)] = static_cast<int>(i);
  return made_by;
}

Cost cost_of(const Graph& graph, const Op& op) {
  return op.def->cost(op.attrs, types_of(graph, op.inputs), types_of(graph, op.outputs));
}

}  // namespace sextant
