// Programs of one op between ranks: every hop of a small tensor on a mesh, and the other ops that talk.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "cuda/op_between_ranks.h"
#include "mesh/local_elements.h"
#include "mesh/redistribution.h"
#include "ops/ops.h"
#include "passes/hops.h"

namespace sextant {

struct HopCase {
  Program program;
  std::string text;  // "dp:S(0) tp:R to dp:R tp:R"
};

inline ValueId add_value(Graph& graph, const std::string& path, DType dtype, const GlobalShape& shape) {
  return graph.add({.path = path, .dtype = dtype, .shape = shape, .layout = invariant_layout(graph.mesh)});
}

// Whether no two axes share a dim: the order in which they were split does not matter then.
inline bool plain(const Layout& layout) {
  std::set<int> dims;
  for (const AxisState& state : layout.states)
    if (state.kind == StateKind::sharded && !dims.insert(state.dim).second) return false;
  return true;
}

inline std::vector<Layout> layouts_of(const Mesh& mesh, const std::vector<AxisState>& states) {
  std::vector<Layout> layouts{{}};
  for (int axis = 0; axis < mesh.axis_count(); ++axis) {
    std::vector<Layout> longer;
    for (const Layout& layout : layouts)
      for (AxisState state : states) {
        longer.push_back(layout);
        longer.back().states.push_back(state);
      }
    layouts = longer;
  }
  return layouts;
}

// Every different hop on the ways between all pairs of states on each axis, and from parts of a maximum, which nothing
// becomes. Neither extent divides by the ranks.
inline std::vector<HopCase> hops_on(const Mesh& mesh, DType dtype) {
  const GlobalShape shape{7, 18};
  std::vector<AxisState> states{kReplicated, kInvariant, kPartial, sharded(0), sharded(1), zigzag(1), striped(1)};
  std::vector<Layout> targets = layouts_of(mesh, states);
  states.push_back(kPartialMax);
  std::set<std::string> seen;
  std::vector<HopCase> cases;
  for (const Layout& from : layouts_of(mesh, states))
    for (const Layout& to : targets) {
      if (!plain(from) || !plain(to)) continue;
      Layout at = from;
      auto hops = route(from, to, mesh);
      if (!hops) continue;  // of a maximum
      for (const Hop& hop : *hops) {
        std::string text = layout_text(at, mesh) + " to " + layout_text(hop.to, mesh);
        if (plain(at) && plain(hop.to) && seen.insert(text).second) {
          Graph graph{.name = "hop", .mesh = mesh};
          ValueId in = add_value(graph, "in", dtype, shape);
          graph[in].layout = at;
          graph[in].layout.order = hop.to.order;
          graph.ops = make_hops(graph, in, hop.to, "moved");
          cases.push_back({program_of(graph), text});
        }
        at = hop.to;
      }
    }
  return cases;
}

inline Program one_op(const Mesh& mesh, const OpDef& def, const std::vector<GlobalShape>& shapes, DType dtype,
                      const Attrs& attrs) {
  Graph graph{.name = std::string(def.name), .mesh = mesh};
  std::vector<ValueId> inputs;
  for (const GlobalShape& shape : shapes)
    inputs.push_back(add_value(graph, fmt::format("in{}", inputs.size()), dtype, shape));
  graph.ops.push_back(make_op(graph, def, inputs, attrs, "op"));
  for (Value& value : graph.values) value.layout = invariant_layout(mesh);
  return program_of(graph);
}

// Gradients of these shapes, summed over the only axis.
inline Program bucket_of(int ranks, const std::vector<GlobalShape>& shapes, DType dtype) {
  Graph graph{.name = "bucket", .mesh = {{{"dp", ranks}}}};
  Op op{.def = &ops::all_reduce_bucket, .path = "bucket"};
  op.attrs = {
      {"axes", std::vector<std::string>{"dp"}}, {"ranks", ranks}, {"count", static_cast<int64_t>(shapes.size())}};
  for (const GlobalShape& shape : shapes) {
    op.inputs.push_back(add_value(graph, fmt::format("in{}", op.inputs.size()), dtype, shape));
    op.outputs.push_back(add_value(graph, fmt::format("out{}", op.outputs.size()), dtype, shape));
  }
  graph.ops.push_back(std::move(op));
  return program_of(graph);
}

// The bytes of an output that stand for elements: in an all-to-all nobody promises anything about padding.
inline Words promised(const Program& program, const Words& bytes, int rank) {
  const Op& op = program.regions[0].ops[0];
  if (!is_hop(op, Transfer::all_to_all)) return bytes;
  const Value& out = program[op.outputs[0]];
  size_t element = static_cast<size_t>(size_of(out.dtype)), i = 0;
  Words kept;
  for (int64_t global : local_elements(out.shape, out.layout, program.mesh, coordinate_of(program.mesh, rank))) {
    auto at = bytes.begin() + static_cast<std::ptrdiff_t>(i++ * element);
    if (global >= 0) kept.insert(kept.end(), at, at + static_cast<std::ptrdiff_t>(element));
  }
  return kept;
}

}  // namespace sextant
