#include "passes/price_format.h"

#include <algorithm>
#include <string>
#include <string_view>

namespace sextant {

namespace {

// The linears that any recipe narrows.
bool is_narrowed(const Op& op) {
  return std::ranges::any_of(fp8_recipes(), [&](const Fp8Recipe& recipe) { return recipe.product_of(op) != nullptr; });
}

// Empty where the op would be done in the format.
std::string_view reason_to_stay(const Graph& graph, const Op& op, const Quantization& what, int blocks) {
  if (op.block < 0) return "outside of the blocks";
  if (op.block < what.skip || op.block >= blocks - what.skip) return "train.fp8_skip";
  for (size_t side : {size_t{0}, size_t{1}}) {
    const Value& value = graph[op.inputs[side]];
    LocalShape local = local_shape(value.shape, value.layout, graph.mesh);
    if (local.last() % what.format->block != 0 || local.rows() % what.format->block != 0)
      return "a size is no multiple of the numbers that share a scale";
  }
  return {};
}

}  // namespace

void price_format(Graph& graph, const Quantization& what) {
  if (!what.format) return;
  int blocks = 0;
  for (const Op& op : graph.ops) blocks = std::max(blocks, op.block + 1);
  for (Op& op : graph.ops) {
    if (!is_narrowed(op)) continue;
    std::string_view why = reason_to_stay(graph, op, what, blocks);
    if (why.empty())
      op.attrs.set(kPricedIn, std::string(what.format->name));
    else
      op.attrs.set("kept_wide", std::string(why));
  }
}

}  // namespace sextant
