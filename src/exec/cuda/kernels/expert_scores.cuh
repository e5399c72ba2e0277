// Work of one warp on the logits of a token's experts: each lane has every 32nd.
#pragma once

#include <cuda_runtime.h>

#include "exec/cuda/kernels/reduce.cuh"

namespace sextant::cuda {

__device__ inline float warp_maximum(float x) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) x = fmaxf(x, __shfl_xor_sync(kWholeWarp, x, distance));
  return x;
}

__device__ inline float sigmoid_of(float x) {
  return 1.0f / (1.0f + expf(-x));
}

// Maps a logit to its softmax: exp(x − top)·inverse.
struct SoftmaxOf {
  float top, inverse;
  __device__ float operator()(float logit) const { return expf(logit - top) * inverse; }
};

__device__ inline SoftmaxOf softmax_of(const float* logits, int n) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float top = -INFINITY, sum = 0;
  for (int e = lane; e < n; e += 32) top = fmaxf(top, logits[e]);
  top = warp_maximum(top);
  for (int e = lane; e < n; e += 32) sum += expf(logits[e] - top);
  return {top, 1.0f / warp_sum(sum)};
}

}  // namespace sextant::cuda
