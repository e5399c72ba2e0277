#include "passes/localize.h"

namespace sextant {

void localize(Graph& graph) {
  std::vector<Op> ops;
  for (Op& op : graph.ops) {
    if (!op.def->localize) {
      ops.push_back(std::move(op));
      continue;
    }
    for (Op& local : op.def->localize(graph, op)) {
      local.phase = op.phase;
      local.block = op.block;
      local.stage = op.stage;
      local.where = op.where;
      ops.push_back(std::move(local));
    }
  }
  graph.ops = std::move(ops);
}

}  // namespace sextant
