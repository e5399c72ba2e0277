// quantize: linears become products of fp8 operands, as a recipe says (ops/fp8_recipe.h). Behind autodiff, so that the
// gradients are those of the wide linear, of operands that are rounded (the straight-through rule), and forward and
// backward share what is quantised: a value is, once, with the transposed copy that the gradients read.
//
// Weights are quantised for the first microbatch of a step and kept for the others, where ZeRO stores them in shards:
// it is the bytes in fp8 that are gathered. A linear that stays wide says why in its attr `kept_wide`.
#pragma once

#include <cstdint>

#include "ir/graph.h"
#include "ops/fp8_recipe.h"

namespace sextant {

struct Quantization {
  const Fp8Recipe* recipe = nullptr;    // null: nothing is done
  const BlockFormat* format = nullptr;  // that products are only priced in (passes/price_format.h)
  int64_t skip = 0;                     // so many blocks at either end stay wide
};

void quantize(Graph& graph, const Quantization& what);

}  // namespace sextant
