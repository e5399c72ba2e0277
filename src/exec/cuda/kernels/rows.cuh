// for_row_vectors: calls body(row, column) on the device for every V columns of a [rows, width] matrix, a thread each.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/units.h"

namespace sextant::cuda {

constexpr int kRowThreads = 256;

template <int V, class Body>
__global__ void __launch_bounds__(kRowThreads) row_vectors_kernel(const __grid_constant__ Body body, int64_t first_row,
                                                                  uint32_t vectors_in_row, uint32_t vectors) {
  uint32_t i = blockIdx.x * kRowThreads + threadIdx.x;
  if (i >= vectors) return;
  uint32_t row = i / vectors_in_row;
  body(first_row + row, static_cast<int64_t>(i - row * vectors_in_row) * V);
}

// As many rows in one launch as 31 bits can count vectors of: 64-bit divisions would cost more than the memory.
template <int V, class Body>
void for_row_vectors(cudaStream_t stream, int64_t rows, int64_t width, const Body& body) {
  int64_t in_row = width / V;
  if (in_row == 0) return;
  int64_t most_rows = std::max<int64_t>(1, (int64_t{1} << 31) / in_row);
  for (int64_t first = 0; first < rows; first += most_rows) {
    int64_t vectors = std::min(most_rows, rows - first) * in_row;
    row_vectors_kernel<V><<<static_cast<unsigned>(ceil_div(vectors, kRowThreads)), kRowThreads, 0, stream>>>(
        body, first, static_cast<uint32_t>(in_row), static_cast<uint32_t>(vectors));
  }
}

}  // namespace sextant::cuda
