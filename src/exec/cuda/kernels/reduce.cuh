// Sums over the threads of a warp or a block, always in the same order.
#pragma once

#include <cuda_runtime.h>

namespace sextant::cuda {

constexpr unsigned kWholeWarp = 0xffffffffu;

template <class Number>
__device__ inline Number warp_sum(Number x) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) x += __shfl_xor_sync(kWholeWarp, x, distance);
  return x;
}

// The sum over a block of kThreads, in every thread. May be called once more only after a barrier.
template <int kThreads, class Number>
__device__ inline Number block_sum(Number x) {
  constexpr int kWarps = kThreads / 32;
  __shared__ Number sums[kWarps];
  x = warp_sum(x);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = x;
  __syncthreads();
  x = 0;
#pragma unroll
  for (int warp = 0; warp < kWarps; ++warp) x += sums[warp];
  return x;
}

}  // namespace sextant::cuda
