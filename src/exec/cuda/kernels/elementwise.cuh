// map_elements: y[i] = f(x[i]...) for n contiguous elements. An input may be the output. Tensors begin on 16-byte
// boundaries.
#pragma once

#include "base/units.h"
#include "exec/cuda/kernels/vector.cuh"

namespace sextant::cuda {

constexpr int kMapThreads = 256;
constexpr int kMapVector = 8;  // elements that a thread takes at once: 16 bytes of bf16, 32 of f32
constexpr int kMapUnroll = 2;  // and how many times, with all loads on their way before the first store

// f takes a pointer to one float per input.
template <class F, class Y, class... X>
__global__ void __launch_bounds__(kMapThreads) map_kernel(F f, int64_t n, Y* y, const X*... x) {
  constexpr int kInputs = sizeof...(X);
  int64_t first = (static_cast<int64_t>(blockIdx.x) * kMapUnroll * kMapThreads + threadIdx.x) * kMapVector;
  float values[kMapUnroll][kInputs][kMapVector];
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
    } else {
      for (int64_t i = at; i < n; ++i) {
        const float element[kInputs] = {static_cast<float>(x[i])...};
        y[i] = static_cast<Y>(f(element));
      }
    }
  }
}

template <class F, class Y, class... X>
void map_elements(cudaStream_t stream, F f, int64_t n, Y* y, const X*... x) {
  if (n == 0) return;
  int64_t blocks = ceil_div(n, kMapThreads * kMapVector * kMapUnroll);
  map_kernel<<<static_cast<unsigned>(blocks), kMapThreads, 0, stream>>>(f, n, y, x...);
}

}  // namespace sextant::cuda
