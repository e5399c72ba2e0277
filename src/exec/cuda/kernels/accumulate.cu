#include "exec/cuda/kernels/elementwise.cuh"
#include "exec/cuda/runtime/kernel.h"

namespace sextant::cuda {

namespace {

struct Sum {
  __device__ float operator()(const float* x) const { return x[0] + x[1]; }
};

struct Same {
  __device__ float operator()(const float* x) const { return x[0]; }
};

// Exact sums of gradients (ops/exact_sum.cpp).
__global__ void __launch_bounds__(kMapThreads) add_doubles(double* total, const double* x, int64_t n, bool fresh) {
  int64_t i = static_cast<int64_t>(blockIdx.x) * kMapThreads + threadIdx.x;
  if (i < n) total[i] = fresh ? x[i] : total[i] + x[i];
}

// A gradient is kept in f32, and what is added to it may come in 16 bits.
void launch(const CudaCall& call) {
  const Tensor &x = call.in[1], &total = call.out[0];
  if (total.dtype == DType::f64) {
    auto blocks = static_cast<unsigned>(ceil_div(total.count(), kMapThreads));
    if (blocks > 0)
      add_doubles<<<blocks, kMapThreads, 0, call.stream>>>(total.as<double>(), x.as<const double>(), total.count(),
                                                           call.sum == SumState::fresh);
    return;
  }
  for_cuda_type(total.dtype, [&]<class Total>() {
    for_cuda_type(x.dtype, [&]<class X>() {
      if (call.sum == SumState::fresh)
        map_elements(call.stream, Same{}, total.count(), total.as<Total>(), x.as<const X>());
      else
        map_elements(call.stream, Sum{}, total.count(), total.as<Total>(), total.as<const Total>(), x.as<const X>());
    });
  });
}

}  // namespace

const CudaKernel accumulate{.launch = launch};

}  // namespace sextant::cuda
