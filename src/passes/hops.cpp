#include "passes/hops.h"

#include "base/error.h"
#include "mesh/placement.h"
#include "ops/ops.h"
#include "ops/transfer.h"

namespace sextant {

bool is_hop(const Op& op, Transfer transfer) {
  return op.def->layout_rule == LayoutRule::free && transfer_of(op.attrs) == transfer;
}

void label_hop(const Graph& graph, Op& op) {
  Hop hop = hop_between(graph[op.inputs[0]].layout, graph[op.outputs[0]].layout, graph.mesh);
  std::vector<std::string> axes;
  for (int axis : hop.axes) axes.push_back(graph.mesh.name(axis));
  set_transfer(op.attrs, hop.transfer);
  op.attrs.set("axes", axes);
  int64_t ranks = 1;
  for (int axis : hop.axes) ranks *= graph.mesh.size(axis);
  op.attrs.set("ranks", ranks);
  const Value &in = graph[op.inputs[0]], &out = graph[op.outputs[0]];
  if (hop.transfer == Transfer::all_to_all)
    op.attrs.set("part", largest_exchange(in.shape, graph.mesh, in.layout, out.layout, hop.axes));
  bool gathers = hop.transfer == Transfer::all_gather, scatters = hop.transfer == Transfer::reduce_scatter;
  if (gathers || scatters) {
    bool contiguous = parts_are_contiguous(in.shape, graph.mesh, gathers ? out.layout : in.layout,
                                           gathers ? in.layout : out.layout, hop.axes);
    op.attrs.set("packed", int64_t{contiguous ? 0 : 1});
  }
}

std::vector<Op> make_hops(Graph& graph, ValueId from, const Layout& to, const std::string& path) {
  auto hops = route(graph[from].layout, to, graph.mesh);
  BUG_IF(!hops, "{}: no transfer leads from {} to {}", graph[from].path, layout_text(graph[from].layout, graph.mesh),
         layout_text(to, graph.mesh));
  std::vector<Op> ops;
  for (const Hop& hop : *hops) {
    Op op = make_op(graph, ops::redistribute, {from}, {}, path);
    graph[op.outputs[0]].layout = hop.to;
    label_hop(graph, op);
    from = op.outputs[0];
    ops.push_back(std::move(op));
  }
  return ops;
}

}  // namespace sextant
