// The small steps between the GEMMs of `orthogonalize` (exec/cuda/gemm/orthogonalize.cpp).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "base/dtype.h"

namespace sextant::cuda {

// y = x / max(‖x‖, least) in `dtype`. `partials`: norm_partial_count(count) doubles.
struct NormalizedMatrix {
  const float* x;
  void* y;
  DType dtype;
  int64_t count;
  double least;
  double* partials;
};
void normalize_matrix(const NormalizedMatrix& matrix, cudaStream_t stream);

// gram = a·I + b·gram + c·square, of `side` rows and columns.
struct Polynomial {
  void* gram;
  const void* square;
  DType dtype;
  int64_t side;
  float a, b, c;
};
void apply_polynomial(const Polynomial& polynomial, cudaStream_t stream);

// y = factor·x, with x in `dtype`.
void scale_matrix(const void* x, DType dtype, float* y, int64_t count, float factor, cudaStream_t stream);

}  // namespace sextant::cuda
