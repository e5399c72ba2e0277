// The scratch of Adafactor's ops on a GPU: a sum for every row, and for sums over columns a partial one for every slice
// of rows.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/shape.h"
#include "base/units.h"
#include "ir/attrs.h"

namespace sextant::cuda {

inline int64_t row_sum_bytes(int64_t rows) {
  return round_up(rows * int64_t{sizeof(double)}, 256);
}

struct AdafactorSums {
  int64_t rows, width, packed;
  int64_t slices, rows_of_slice;

  AdafactorSums(const Attrs& attrs, const LocalShape& matrix)
      : rows(matrix[0]), width(matrix[1]), packed(static_cast<int64_t>(attrs.integers("packed").size())) {
    rows_of_slice = std::max<int64_t>(32, ceil_div(rows, 64));
    slices = std::max<int64_t>(1, ceil_div(rows, rows_of_slice));
  }
  int64_t partial_bytes() const { return slices * packed * width * int64_t{sizeof(float)}; }
  int64_t bytes() const { return row_sum_bytes(rows) + partial_bytes(); }
};

}  // namespace sextant::cuda
