// How CPU kernels cut work into tasks: by shape alone, so that neither results nor partial sums depend on the thread
// count.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/units.h"

namespace sextant::cpu {

// Elements of a streaming op in one task: large enough that handing out tasks costs nothing, small enough for L2.
constexpr int64_t kElementsPerTask = 16384;

// Rows of which each block leaves a partial sum.
struct RowBlocks {
  int64_t rows;
  int64_t block;  // rows in one block (the last may have fewer)

  int64_t count() const { return ceil_div(rows, block); }
};

// At most 64 blocks, so that the partial sums stay small beside the rows themselves.
inline RowBlocks row_blocks(int64_t rows) {
  return {rows, std::max<int64_t>(16, ceil_div(rows, 64))};
}

}  // namespace sextant::cpu
