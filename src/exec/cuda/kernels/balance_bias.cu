#include "exec/cuda/kernels/reduce.cuh"
#include "exec/cuda/runtime/kernel.h"

namespace sextant::cuda {

namespace {

constexpr int kBiasThreads = 256;

// One block: experts are few.
__global__ void __launch_bounds__(kBiasThreads)
    step_bias(float* bias, const float* counts, const float* scale, int n, float speed) {
  if (*scale == 0.0f) return;
  double sum = 0;  // of whole numbers, so that equality with the mean is exact
  for (int e = static_cast<int>(threadIdx.x); e < n; e += kBiasThreads) sum += static_cast<double>(counts[e]);
  sum = block_sum<kBiasThreads>(sum);
  for (int e = static_cast<int>(threadIdx.x); e < n; e += kBiasThreads) {
    double load = static_cast<double>(counts[e]) * n;
    if (load < sum) bias[e] += speed;
    if (load > sum) bias[e] -= speed;
  }
}

void run_balance_bias(const CudaCall& call) {
  step_bias<<<1, kBiasThreads, 0, call.stream>>>(call.out[0].as<float>(), call.in[1].as<float>(),
                                                 call.in[2].as<float>(), static_cast<int>(call.in[1].count()),
                                                 static_cast<float>(call.attrs.real("speed")));
}

}  // namespace

const CudaKernel balance_bias{.launch = run_balance_bias};

}  // namespace sextant::cuda
