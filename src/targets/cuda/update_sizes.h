// The update's scratch on a GPU: sums of squares, sums of scalars, and what AdamW finds once per step.
#pragma once

#include <cstdint>

#include "base/units.h"

namespace sextant::cuda {

// Elements that one block squares and adds up.
constexpr int kSquareThreads = 256, kSquareVector = 8, kSquareRounds = 8;
constexpr int64_t kSquareElements = int64_t{kSquareThreads} * kSquareVector * kSquareRounds;

inline int64_t square_block_count(int64_t count) {
  return ceil_div(count, kSquareElements);
}
// A partial sum per block; none where one block is enough.
inline int64_t square_partial_bytes(int64_t count) {
  return square_block_count(count) > 1 ? square_block_count(count) * int64_t{sizeof(double)} : 0;
}

// Of an exact sum of squares (exec/exact_arithmetic.h): three bins, for each block and between launches.
constexpr int64_t kExactBinBytes = 3 * sizeof(double);
inline int64_t exact_partial_bytes(int64_t count) {
  return square_block_count(count) * kExactBinBytes;
}

// Between launches a sum of many scalars rests in one double.
constexpr int64_t kScalarSumBytes = sizeof(double);

// Scale, learning rate, and the rates with bias correction.
constexpr int64_t kAdamWStepBytes = 4 * sizeof(float);

}  // namespace sextant::cuda
