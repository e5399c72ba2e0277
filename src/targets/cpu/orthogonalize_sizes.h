// The scratch of `orthogonalize` on a CPU: two copies of the largest packed matrix, two of its Gram matrix, and that of
// the GEMMs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/units.h"
#include "targets/cpu/gemm_sizes.h"

namespace sextant::cpu {

struct OrthogonalizeSizes {
  int64_t matrix = 0, gram = 0;  // bytes of one
  int64_t gemms = 0;

  OrthogonalizeSizes(const std::vector<int64_t>& packed, int64_t columns, int64_t element, int threads) {
    for (int64_t rows : packed) {
      int64_t shorter = std::min(rows, columns);
      matrix = std::max(matrix, round_up(rows * columns * element, 64));
      gram = std::max(gram, round_up(shorter * shorter * element, 64));
      gemms = std::max({gemms, multiply_workspace(shorter, std::max(rows, columns), threads),
                        multiply_workspace(shorter, shorter, threads), multiply_workspace(columns, shorter, threads)});
    }
  }
  int64_t bytes() const { return 2 * matrix + 2 * gram + gemms; }
};

}  // namespace sextant::cpu
