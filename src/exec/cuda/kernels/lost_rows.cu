#include <algorithm>
#include <span>

#include "exec/cuda/runtime/kernel.h"

namespace sextant::cuda {

namespace {

constexpr int kLayersAtOnce = 256, kLostThreads = 128;

struct LostOfLayers {
  int layers;
  const float* at[kLayersAtOnce];
};

enum class LostChunk : uint8_t { first, following };

__global__ void __launch_bounds__(kLostThreads)
    join_lost_kernel(const __grid_constant__ LostOfLayers lost, const float* total, float* sums, int64_t counts,
                     LostChunk chunk) {
  if (chunk == LostChunk::first && threadIdx.x == 0) sums[0] = *total;
  for (int64_t i = threadIdx.x; i < counts; i += kLostThreads) {
    float sum = chunk == LostChunk::first ? 0.0f : sums[1 + i];
    for (int layer = 0; layer < lost.layers; ++layer) sum += lost.at[layer][i];
    sums[1 + i] = sum;
  }
}

void launch_join(const CudaCall& call) {
  std::span<const Tensor> left = call.in.subspan(1);
  LostChunk chunk = LostChunk::first;
  do {
    LostOfLayers lost{};
    lost.layers = static_cast<int>(std::min<size_t>(left.size(), kLayersAtOnce));
    for (int i = 0; i < lost.layers; ++i) lost.at[i] = left[static_cast<size_t>(i)].as<float>();
    left = left.subspan(static_cast<size_t>(lost.layers));
    join_lost_kernel<<<1, kLostThreads, 0, call.stream>>>(lost, call.in[0].as<const float>(), call.out[0].as<float>(),
                                                          call.attrs.integer("counts"), chunk);
    chunk = LostChunk::following;
  } while (!left.empty());
}

__global__ void clip_lost_kernel(const float* sums, int64_t count, double clip, int64_t rounds, float* norm,
                                 float* scale, float* lost, float* needed) {
  const double root = sqrt(static_cast<double>(sums[0]));
  const bool served = rounds >= count || sums[rounds] == 0.0f;
  int64_t last = count - 1;
  while (last > 0 && !(sums[last] > 0.0f)) --last;
  *norm = static_cast<float>(root);
  *scale = isfinite(root) && served ? static_cast<float>(clip > 0 ? fmin(1.0, clip / root) : 1.0) : 0.0f;
  *lost = sums[1];
  *needed = static_cast<float>(1 + last);
}

void launch_clip(const CudaCall& call) {
  clip_lost_kernel<<<1, 1, 0, call.stream>>>(call.in[0].as<const float>(), call.in[0].count(), call.attrs.real("clip"),
                                             call.attrs.integer("rounds"), call.out[0].as<float>(),
                                             call.out[1].as<float>(), call.out[2].as<float>(), call.out[3].as<float>());
}

}  // namespace

const CudaKernel join_lost{.launch = launch_join};
const CudaKernel clip_lost{.launch = launch_clip};

}  // namespace sextant::cuda
