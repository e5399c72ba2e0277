#include "exec/cuda/kernels/reduce.cuh"
#include "exec/cuda/runtime/kernel.h"

namespace sextant::cuda {

namespace {

constexpr int kStatisticsThreads = 256;

// One block: experts are few.
__global__ void __launch_bounds__(kStatisticsThreads)
    load_numbers(const float* counts, int n, float* peak, float* entropy, float* unused) {
  __shared__ float largest[kStatisticsThreads];
  double sum = 0, zeros = 0;
  float most = 0;
  for (int e = static_cast<int>(threadIdx.x); e < n; e += kStatisticsThreads) {
    sum += static_cast<double>(counts[e]);
    zeros += counts[e] == 0.0f ? 1 : 0;
    most = fmaxf(most, counts[e]);
  }
  largest[threadIdx.x] = most;
  sum = block_sum<kStatisticsThreads>(sum);
  __syncthreads();
  zeros = block_sum<kStatisticsThreads>(zeros);
  __syncthreads();
  double bits = 0;
  for (int e = static_cast<int>(threadIdx.x); e < n; e += kStatisticsThreads) {
    double share = static_cast<double>(counts[e]) / sum;
    if (share > 0) bits -= share * log(share);
  }
  bits = block_sum<kStatisticsThreads>(bits);
  if (threadIdx.x != 0) return;
  for (int i = 1; i < kStatisticsThreads; ++i) most = fmaxf(most, largest[i]);
  *peak = static_cast<float>(static_cast<double>(most) * n / sum);
  *entropy = static_cast<float>(n > 1 ? bits / log(static_cast<double>(n)) : 1);
  *unused = static_cast<float>(zeros);
}

void run_load_statistics(const CudaCall& call) {
  load_numbers<<<1, kStatisticsThreads, 0, call.stream>>>(call.in[0].as<float>(), static_cast<int>(call.in[0].count()),
                                                          call.out[0].as<float>(), call.out[1].as<float>(),
                                                          call.out[2].as<float>());
}

}  // namespace

const CudaKernel load_statistics{.launch = run_load_statistics};

}  // namespace sextant::cuda
