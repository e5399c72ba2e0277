// The largest magnitude of a value, found while it is read or written (ops/quantize.cpp). Magnitudes are compared as
// bits: in that order a NaN is above everything, so it stays, and the result does not depend on who comes first.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "exec/cuda/kernels/reduce.cuh"
#include "exec/cuda/runtime/check.h"
#include "exec/cuda/runtime/kernel.h"

namespace sextant::cuda {

__device__ inline uint32_t magnitude_bits(float x) {
  return __float_as_uint(x) & 0x7fffffffu;
}

template <int N>
__device__ inline uint32_t largest_bits(const float (&x)[N]) {
  uint32_t most = 0;
#pragma unroll
  for (int i = 0; i < N; ++i) most = max(most, magnitude_bits(x[i]));
  return most;
}

// Joins a thread's largest magnitude to *amax, which was 0 at first. By whole warps. T: what the value is stored in;
// rounding keeps the order, so only the largest is rounded.
template <class T>
__device__ inline void join_amax(float* amax, uint32_t bits) {
  bits = __reduce_max_sync(kWholeWarp, bits);
  if (threadIdx.x % 32 != 0) return;
  bits = magnitude_bits(static_cast<float>(static_cast<T>(__uint_as_float(bits))));
  auto* shared = reinterpret_cast<unsigned*>(amax);
  if (bits > __ldcg(shared)) atomicMax(shared, bits);  // few are larger than all before
}

inline void clear_amax(float* amax, cudaStream_t stream) {
  check_cuda(cudaMemsetAsync(amax, 0, sizeof(float), stream), "clearing amax");
}

// Where an op that was told so (attr `amax`) writes the largest magnitude of its result, as its last output; cleared
// before the kernel. Null: it was not told.
inline float* amax_of(const CudaCall& call) {
  if (call.attrs.integer_or("amax", 0) == 0) return nullptr;
  auto* amax = call.out.back().as<float>();
  clear_amax(amax, call.stream);
  return amax;
}

}  // namespace sextant::cuda
