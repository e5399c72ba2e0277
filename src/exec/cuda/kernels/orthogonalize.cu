#include "exec/cuda/kernels/orthogonalize.h"

#include "base/units.h"
#include "exec/cuda/kernels/reduce.cuh"
#include "exec/cuda/runtime/real_type.h"
#include "targets/cuda/orthogonalize_sizes.h"

namespace sextant::cuda {

namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads) square_parts(const float* x, int64_t n, double* partials) {
  int64_t begin = static_cast<int64_t>(blockIdx.x) * kNormElements;
  int64_t end = begin + kNormElements < n ? begin + kNormElements : n;
  double sum = 0;
  for (int64_t i = begin + threadIdx.x; i < end; i += kThreads) sum += static_cast<double>(x[i]) * x[i];
  sum = block_sum<kThreads>(sum);
  if (threadIdx.x == 0) partials[blockIdx.x] = sum;
}

// The partial sums become 1/‖x‖, in the first of them.
__global__ void __launch_bounds__(kThreads) inverse_norm(double* partials, int64_t count, double least) {
  double sum = 0;
  for (int64_t i = threadIdx.x; i < count; i += kThreads) sum += partials[i];
  sum = block_sum<kThreads>(sum);
  if (threadIdx.x == 0) partials[0] = 1.0 / fmax(sqrt(sum), least);
}

// Element by element: a packed matrix begins anywhere in its tensor, not on a 16-byte boundary.
template <class T>
__global__ void __launch_bounds__(kThreads) normalize_kernel(const float* x, T* y, int64_t n, const double* inverse) {
  int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < n) y[i] = static_cast<T>(static_cast<float>(x[i] * *inverse));
}

template <class T>
__global__ void __launch_bounds__(kThreads) scale_kernel(const T* x, float* y, int64_t n, float factor) {
  int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < n) y[i] = static_cast<float>(x[i]) * factor;
}

unsigned blocks_of(int64_t count) {
  return static_cast<unsigned>(ceil_div(count, kThreads));
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    polynomial_kernel(T* gram, const T* square, int64_t side, float a, float b, float c) {
  int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= side * side) return;
  float value = b * static_cast<float>(gram[i]) + c * static_cast<float>(square[i]);
  if (i % (side + 1) == 0) value += a;
  gram[i] = static_cast<T>(value);
}

}  // namespace

void normalize_matrix(const NormalizedMatrix& m, cudaStream_t stream) {
  int64_t parts = norm_partial_count(m.count);
  square_parts<<<static_cast<unsigned>(parts), kThreads, 0, stream>>>(m.x, m.count, m.partials);
  inverse_norm<<<1, kThreads, 0, stream>>>(m.partials, parts, m.least);
  for_cuda_type(m.dtype, [&]<class T>() {
    normalize_kernel<<<blocks_of(m.count), kThreads, 0, stream>>>(m.x, static_cast<T*>(m.y), m.count, m.partials);
  });
}

void apply_polynomial(const Polynomial& p, cudaStream_t stream) {
  for_cuda_type(p.dtype, [&]<class T>() {
    polynomial_kernel<<<blocks_of(p.side * p.side), kThreads, 0, stream>>>(
        static_cast<T*>(p.gram), static_cast<const T*>(p.square), p.side, p.a, p.b, p.c);
  });
}

void scale_matrix(const void* x, DType dtype, float* y, int64_t count, float factor, cudaStream_t stream) {
  for_cuda_type(dtype, [&]<class T>() {
    scale_kernel<<<blocks_of(count), kThreads, 0, stream>>>(static_cast<const T*>(x), y, count, factor);
  });
}

}  // namespace sextant::cuda
