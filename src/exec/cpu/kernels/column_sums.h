// Sums over rows, such as the gradient of a norm's weight. Rows are cut into blocks by shape alone; each block leaves
// its own sum in `partials`, and the sums are added in block order: the result does not depend on the thread count.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/threads.h"
#include "exec/cpu/kernels/blocks.h"
#include "exec/cpu/kernels/gemm.h"
#include "targets/cpu/task_sizes.h"

namespace sextant::cpu {

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
