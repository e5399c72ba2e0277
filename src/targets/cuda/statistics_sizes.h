// The scratch of ops that measure tensors, on a GPU.
#pragma once

#include <cstdint>

namespace sextant::cuda {

// A tensor is shared among at most so many blocks, each with as many sums as the op writes: as many as keep the memory
// of a large device busy.
constexpr int kStatisticsBlocks = 1056;
constexpr int kMostStatistics = 4;
constexpr int64_t kStatisticsBytes = int64_t{kStatisticsBlocks} * kMostStatistics * int64_t{sizeof(double)};

// The largest logit so far, as bits that are ordered as numbers are.
constexpr int64_t kLargestLogitBytes = sizeof(uint32_t);

}  // namespace sextant::cuda
