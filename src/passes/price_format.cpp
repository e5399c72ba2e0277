#include "passes/price_format.h"

#include <algorithm>
#include <string>

#include "passes/kept_wide.h"

namespace sextant {

namespace {

// The linears that any recipe narrows.
bool is_narrowed(const Op& op) {
  return std::ranges::any_of(fp8_recipes(), [&](const Fp8Recipe& recipe) { return recipe.product_of(op) != nullptr; });
}

}  // namespace

void price_format(Graph& graph, const Quantization& what) {
  if (!what.format) return;
  NarrowedLinears linears{.blocks = blocks_of(graph), .skip = what.skip, .unit = what.format->block};
  for (Op& op : graph.ops) {
    if (!is_narrowed(op)) continue;
    std::string why = reason_to_keep_wide(graph, op, linears);
    if (why.empty())
      op.attrs.set(kPricedIn, std::string(what.format->name()));
    else
      op.attrs.set("kept_wide", why);
  }
}

}  // namespace sextant
