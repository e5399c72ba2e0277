// map_elements: y[i] = f(x[i]...) for n contiguous elements. An input may be the output. Tensors begin on 16-byte
// boundaries.
#pragma once

#include "base/units.h"
#include "exec/cuda/kernels/amax.cuh"
#include "exec/cuda/kernels/vector.cuh"

namespace sextant::cuda {

constexpr int kMapThreads = 256;
constexpr int kMapVector = 8;  // elements that a thread takes at once: 16 bytes of bf16, 32 of f32
constexpr int kMapUnroll = 2;  // and how many times, with all loads on their way before the first store

// f takes a pointer to one float per input. kAmax: the largest magnitude of y joins *amax (amax.cuh).
template <bool kAmax, class F, class Y, class... X>
__global__ void __launch_bounds__(kMapThreads) map_kernel(F f, int64_t n, Y* y, float* amax, const X*... x) {
  constexpr int kInputs = sizeof...(X);
  int64_t first = (static_cast<int64_t>(blockIdx.x) * kMapUnroll * kMapThreads + threadIdx.x) * kMapVector;
  float values[kMapUnroll][kInputs][kMapVector];
  uint32_t most = 0;
#pragma unroll
  for (int u = 0; u < kMapUnroll; ++u) {
    int64_t at = first + u * kMapThreads * kMapVector;
    int input = 0;
    if (at + kMapVector <= n) (load_floats<kMapVector>(x + at, values[u][input++]), ...);
  }
#pragma unroll
  for (int u = 0; u < kMapUnroll; ++u) {
    int64_t at = first + u * kMapThreads * kMapVector;
    if (at + kMapVector <= n) {
      float results[kMapVector];
#pragma unroll
      for (int e = 0; e < kMapVector; ++e) {
        float element[kInputs];
#pragma unroll
        for (int k = 0; k < kInputs; ++k) element[k] = values[u][k][e];
        results[e] = f(element);
      }
      store_floats(y + at, results);
      if constexpr (kAmax) most = max(most, largest_bits(results));
    } else {
      for (int64_t i = at; i < n; ++i) {
        const float element[kInputs] = {static_cast<float>(x[i])...};
        float result = f(element);
        y[i] = static_cast<Y>(result);
        if constexpr (kAmax) most = max(most, magnitude_bits(result));
      }
    }
  }
  if constexpr (kAmax) join_amax<Y>(amax, most);
}

inline unsigned map_blocks(int64_t n) {
  return static_cast<unsigned>(ceil_div(n, kMapThreads * kMapVector * kMapUnroll));
}

template <class F, class Y, class... X>
void map_elements(cudaStream_t stream, F f, int64_t n, Y* y, const X*... x) {
  if (n == 0) return;
  map_kernel<false><<<map_blocks(n), kMapThreads, 0, stream>>>(f, n, y, static_cast<float*>(nullptr), x...);
}

// With the largest magnitude of y, where the op was told to find it.
template <class F, class Y, class... X>
void map_elements(const CudaCall& call, F f, int64_t n, Y* y, const X*... x) {
  float* amax = amax_of(call);
  if (!amax) return map_elements(call.stream, f, n, y, x...);
  if (n > 0) map_kernel<true><<<map_blocks(n), kMapThreads, 0, call.stream>>>(f, n, y, amax, x...);
}

}  // namespace sextant::cuda
