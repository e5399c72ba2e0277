// for_row_vectors: calls body(row, column) on the device for every V columns of a [rows, width] matrix, a thread each.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/units.h"
#include "exec/cuda/kernels/amax.cuh"

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

// The same of a body that returns the largest magnitude of what it wrote as T, as bits.
template <class T, int V, class Body>
__global__ void __launch_bounds__(kRowThreads)
    row_vectors_amax_kernel(const __grid_constant__ Body body, int64_t first_row, uint32_t vectors_in_row,
                            uint32_t vectors, float* amax) {
  uint32_t i = blockIdx.x * kRowThreads + threadIdx.x, row = i / vectors_in_row, most = 0;
  if (i < vectors) most = body(first_row + row, static_cast<int64_t>(i - row * vectors_in_row) * V);
  join_amax<T>(amax, most);
}

// As many rows in one launch as 31 bits can count vectors of: 64-bit divisions would cost more than the memory.
// Calls launch(first row, vectors in a row, vectors, blocks).
template <int V, class Launch>
void for_row_launches(int64_t rows, int64_t width, const Launch& launch) {
  int64_t in_row = width / V;
  if (in_row == 0) return;
  int64_t most_rows = std::max<int64_t>(1, (int64_t{1} << 31) / in_row);
  for (int64_t first = 0; first < rows; first += most_rows) {
    int64_t vectors = std::min(most_rows, rows - first) * in_row;
    launch(first, static_cast<uint32_t>(in_row), static_cast<uint32_t>(vectors),
           static_cast<unsigned>(ceil_div(vectors, kRowThreads)));
  }
}

template <int V, class Body>
void for_row_vectors(cudaStream_t stream, int64_t rows, int64_t width, const Body& body) {
  for_row_launches<V>(rows, width, [&](int64_t first, uint32_t in_row, uint32_t vectors, unsigned blocks) {
    row_vectors_kernel<V><<<blocks, kRowThreads, 0, stream>>>(body, first, in_row, vectors);
  });
}

// With the largest magnitude of all that is written (amax.cuh), where there is a place for it.
template <class T, int V, class Body>
void for_row_vectors(cudaStream_t stream, int64_t rows, int64_t width, const Body& body, float* amax) {
  if (!amax) return for_row_vectors<V>(stream, rows, width, body);
  for_row_launches<V>(rows, width, [&](int64_t first, uint32_t in_row, uint32_t vectors, unsigned blocks) {
    row_vectors_amax_kernel<T, V><<<blocks, kRowThreads, 0, stream>>>(body, first, in_row, vectors, amax);
  });
}

}  // namespace sextant::cuda
