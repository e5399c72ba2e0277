#include "passes/kept_wide.h"

#include <fmt/format.h>

#include <algorithm>

namespace sextant {

int blocks_of(const Graph& graph) {
  int blocks = 0;
  for (const Op& op : graph.ops) blocks = std::max(blocks, op.block + 1);
  return blocks;
}

std::string reason_to_keep_wide(const Graph& graph, const Op& op, const NarrowedLinears& which) {
  if (op.block < 0) return "outside of the blocks";
  if (op.block < which.skip || op.block >= which.blocks - which.skip) return "train.fp8_skip";
  for (size_t side : {size_t{0}, size_t{1}}) {
    const Value& value = graph[op.inputs[side]];
    LocalShape local = local_shape(value.shape, value.layout, graph.mesh);
    if (local.last() % which.unit != 0 || local.rows() % which.unit != 0)
      return fmt::format("a size is no multiple of {}", which.unit);
  }
  return {};
}

}  // namespace sextant
