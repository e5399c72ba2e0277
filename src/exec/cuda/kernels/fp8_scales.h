// The scales of tiles and blocks in the order in which cuBLASLt reads them (targets/cuda/fp8_sizes.h).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace sextant::cuda {

// to[column][row] = from[row][column].
void transpose_scales(const float* from, float* to, int64_t rows, int64_t columns, cudaStream_t stream);

// Rows that are `stride` apart; zeros behind each.
void pad_scales(const float* from, float* to, int64_t rows, int64_t columns, int64_t stride, cudaStream_t stream);

}  // namespace sextant::cuda
