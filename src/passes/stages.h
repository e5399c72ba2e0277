// stages: cuts the model into pipeline stages. What stands before the first block goes to the first stage, what stands
// behind the last block to the last one (with the blocks of multi-token prediction), and whole blocks in between,
// contiguous and in order.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace sextant {

// How many blocks each stage gets, such that the costliest stage costs as little as possible, the ends of the model
// counted with the stages that hold them. The first and the last stage may have none where that costs less, or where
// there are up to two stages more than blocks.
std::vector<int> balanced_blocks(const Graph& graph, int stages);

void assign_stages(Graph& graph, const std::vector<int>& blocks_per_stage);

// Without those behind the last one.
int block_count(const Graph& graph);

}  // namespace sextant
