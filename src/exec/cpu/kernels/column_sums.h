// Sums over rows, such as the gradient of a norm's weight. Rows are cut into blocks by shape alone; each block leaves
// its own sum in `partials`, and the sums are added in block order: the result does not depend on the thread count.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/threads.h"
#include "exec/cpu/kernels/blocks.h"
#include "exec/cpu/kernels/gemm.h"

namespace sextant::cpu {

struct RowBlocks {
  int64_t rows;
  int64_t block;  // rows in one block (the last may have fewer)

  int64_t count() const { return ceil_div(rows, block); }
};

// At most 64 blocks, so that the partial sums stay small beside the rows themselves.
inline RowBlocks row_blocks(int64_t rows) {
  return {rows, std::max<int64_t>(16, ceil_div(rows, 64))};
}

// out = (or +=) the sum over blocks of partials[block * width + column].
template <class T>
void add_partials(ThreadTeam& team, const T* partials, int64_t blocks, int64_t width, T* out, Write write) {
  for_blocks(team, width, 512, [&](int64_t begin, int64_t end) {
    if (write == Write::over) std::fill(out + begin, out + end, T(0));
    for (int64_t block = 0; block < blocks; ++block) {
      const T* partial = partials + block * width;
      for (int64_t j = begin; j < end; ++j) out[j] += partial[j];
    }
  });
}

}  // namespace sextant::cpu
