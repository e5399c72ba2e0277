#include "exec/cuda/kernels/reduce.cuh"
#include "exec/cuda/runtime/kernel.h"

namespace sextant::cuda {

namespace {

constexpr int kBiasThreads = 256;

// One block: experts are few.
__global__ void __launch_bounds__(kBiasThreads)
    step_bias(float* bias, const float* counts, const float* scale, int n, float speed, float* least, float* most) {
  __shared__ float lowest[kBiasThreads], highest[kBiasThreads];
  const bool skipped = *scale == 0.0f;
  double sum = 0;  // of whole numbers, so that equality with the mean is exact
  for (int e = static_cast<int>(threadIdx.x); e < n; e += kBiasThreads) sum += static_cast<double>(counts[e]);
  sum = block_sum<kBiasThreads>(sum);
  float low = INFINITY, high = -INFINITY;
  for (int e = static_cast<int>(threadIdx.x); e < n; e += kBiasThreads) {
    double load = static_cast<double>(counts[e]) * n;
    if (!skipped && load < sum) bias[e] += speed;
    if (!skipped && load > sum) bias[e] -= speed;
    low = fminf(low, bias[e]), high = fmaxf(high, bias[e]);
  }
  lowest[threadIdx.x] = low, highest[threadIdx.x] = high;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int i = 1; i < kBiasThreads; ++i) low = fminf(low, lowest[i]), high = fmaxf(high, highest[i]);
  *least = low, *most = high;
}

void run_balance_bias(const CudaCall& call) {
  step_bias<<<1, kBiasThreads, 0, call.stream>>>(
      call.out[0].as<float>(), call.in[1].as<float>(), call.in[2].as<float>(), static_cast<int>(call.in[1].count()),
      static_cast<float>(call.attrs.real("speed")), call.out[1].as<float>(), call.out[2].as<float>());
}

}  // namespace

const CudaKernel balance_bias{.launch = run_balance_bias};

}  // namespace sextant::cuda
