// Device memory filled where it is: with random numbers to time kernels on, and with a model's initial weights.
#pragma once

#include <cuda_runtime.h>
#include <cstdint>

#include "base/dtype.h"
#include "exec/drawn_piece.h"

namespace sextant {

// Standard normal numbers, always the same.
void fill_random(void* data, int64_t count, DType dtype, cudaStream_t stream);

// A piece of an f32, bf16, f16, fp8 or u16 value at `data`, as Bound::draw says.
void fill_drawn(void* data, DType dtype, const DrawnPiece& piece, cudaStream_t stream);

}  // namespace sextant
