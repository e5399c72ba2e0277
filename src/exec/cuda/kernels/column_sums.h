// Sums over the rows of a matrix: the gradient of a bias. Rows are cut into slices by shape alone; each slice leaves
// its sums in `workspace`, and these are added in a fixed order, so that the result is the same on every device.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"
#include "targets/cuda/row_sum_sizes.h"

namespace sextant::cuda {

struct ColumnSums {
  enum class Write : uint8_t { over, add };

  const void* x;  // [rows, width], f32, bf16 or f16
  DType dtype;
  int64_t rows, width;
  float* out;  // [width]
  Write write;
  std::byte* workspace;  // column_sums_workspace bytes
  cudaStream_t stream;
};

void sum_columns(const ColumnSums& sums);

// The second half alone, for one set of partial sums or two: out[set] (=|+=) the sum over slices of
// partials[set][slice][column].
struct PartialSums {
  const float* partials;
  int64_t slices, width;
  float* out[2];  // the second is null when there is one set
  ColumnSums::Write write;
  cudaStream_t stream;
};

void add_partials(const PartialSums& sums);

}  // namespace sextant::cuda
