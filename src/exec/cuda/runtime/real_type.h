// The element types that CUDA kernels are written for.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "base/dtype.h"

namespace sextant {

// Calls body.template operator()<T>() with T = float, __nv_bfloat16 or __half. bind has refused every other type.
template <class Body>
void for_cuda_type(DType dtype, const Body& body) {
  if (dtype == DType::bf16)
    body.template operator()<__nv_bfloat16>();
  else if (dtype == DType::f16)
    body.template operator()<__half>();
  else
    body.template operator()<float>();
}

}  // namespace sextant
