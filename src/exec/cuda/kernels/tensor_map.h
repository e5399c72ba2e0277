// Descriptors of matrices in device memory for the bulk copies of Hopper (hopper.cuh).
#pragma once

#include <cuda.h>
#include <cuda_bf16.h>

#include <cstdint>

namespace sextant::cuda {

// `count` matrices of rows × width, one behind the other, read in boxes of 64 of the width by `box_rows` rows (at most
// 256) with the 128-byte swizzle. Rows begin at multiples of 16 bytes.
CUtensorMap tensor_map(const __nv_bfloat16* data, int64_t width, int64_t rows, int64_t count, int box_rows);

}  // namespace sextant::cuda
