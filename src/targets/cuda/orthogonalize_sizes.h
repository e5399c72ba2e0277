// The scratch of `orthogonalize` on a GPU: two copies of the largest packed matrix and two of its Gram matrix in the
// type that the GEMMs are computed in, partial sums of its norm, and the GEMMs' own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/dtype.h"
#include "base/units.h"
#include "ir/attrs.h"
#include "targets/cuda/gemm_sizes.h"

namespace sextant::cuda {

// Elements of which one block leaves a partial sum.
constexpr int64_t kNormElements = 16384;

inline int64_t norm_partial_count(int64_t count) {
  return ceil_div(count, kNormElements);
}

inline DType orthogonalize_dtype(const Attrs& attrs) {
  return attrs.integer_or("bf16", 0) != 0 ? DType::bf16 : DType::f32;
}

struct OrthogonalizeSizes {
  int64_t matrix = 0, gram = 0, partials = 0;  // bytes of one

  OrthogonalizeSizes(const std::vector<int64_t>& packed, int64_t columns, int64_t element) {
    for (int64_t rows : packed) {
      int64_t shorter = std::min(rows, columns);
      matrix = std::max(matrix, round_up(rows * columns * element, 256));
      gram = std::max(gram, round_up(shorter * shorter * element, 256));
      partials = std::max(partials, round_up(norm_partial_count(rows * columns) * int64_t{sizeof(double)}, 256));
    }
  }
  int64_t bytes() const { return 2 * matrix + 2 * gram + partials + kGemmWorkspace; }
};

}  // namespace sextant::cuda
