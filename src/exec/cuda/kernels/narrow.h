// narrow_floats: f32 numbers as another type.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "base/dtype.h"

namespace sextant::cuda {

void narrow_floats(const float* from, void* to, DType dtype, int64_t count, cudaStream_t stream);

}  // namespace sextant::cuda
