// Graph: the global view of one microbatch and of the update. Values are in SSA form: made by one op, or given
// (parameter, gradient, state, feed). Ops stand in an order that respects their uses.
#pragma once

#include <string>
#include <vector>

#include "ir/op.h"
#include "ir/op_def.h"
#include "ir/value.h"
#include "mesh/mesh.h"

namespace sextant {

struct Graph {
  std::string name;
  Mesh mesh;
  std::vector<Value> values;  // indexed by id
  std::vector<Op> ops;

  const Value& operator[](ValueId id) const { return values[static_cast<size_t>(id)]; }
  Value& operator[](ValueId id) { return values[static_cast<size_t>(id)]; }

  ValueId add(Value value);  // sets the id
  const Value* find(std::string_view path) const;
};

TensorType type_of(const Value& value);
TensorTypes types_of(const Graph& graph, const std::vector<ValueId>& ids);

// An op with fresh activation outputs of the inferred types, appended to nothing: the caller places it. Output paths
// are `path` followed by the operand's name where there are several. Layouts of outputs are left invariant.
Op make_op(Graph& graph, const OpDef& def, std::vector<ValueId> inputs, Attrs attrs, std::string path);

// For each value the index of the op that makes it, or -1.
std::vector<int> producers(const Graph& graph);

Cost cost_of(const Graph& graph, const Op& op);

}  // namespace sextant
