// price_format: names the format that linears of blocks are to be priced in (attr `priced_in`), where a run is planned
// in one that nothing runs yet. The ops stay as they are. A linear that would stay wide says why in `kept_wide`.
#pragma once

#include "ir/graph.h"
#include "passes/quantize.h"

namespace sextant {

void price_format(Graph& graph, const Quantization& what);

}  // namespace sextant
