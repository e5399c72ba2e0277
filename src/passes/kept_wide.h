// Why a linear keeps its precision where those of the blocks are narrowed, by where it stands and by its sizes on a
// rank: the same for formats that run (passes/quantize.h) and for those that are only priced (passes/price_format.h).
#pragma once

#include <cstdint>
#include <string>

#include "ir/graph.h"

namespace sextant {

int blocks_of(const Graph& graph);

struct NarrowedLinears {
  int blocks = 0;
  int64_t skip = 0;  // train.fp8_skip: so many blocks at either end stay wide
  int64_t unit = 0;  // what every size of both operands must be a multiple of
};

// As the attr `kept_wide` has it; empty where nothing speaks against it.
std::string reason_to_keep_wide(const Graph& graph, const Op& op, const NarrowedLinears& which);

}  // namespace sextant
