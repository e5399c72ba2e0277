#include "exec/cuda/kernels/elementwise.cuh"
#include "exec/cuda/runtime/kernel.h"

namespace sextant::cuda {

namespace {

struct Larger {
  __device__ float operator()(const float* x) const { return x[1] <= x[0] || isnan(x[0]) ? x[0] : x[1]; }
};

struct Newest {
  __device__ float operator()(const float* x) const { return x[0]; }
};

void launch_keep_largest(const CudaCall& call) {
  const Tensor &x = call.in[1], &total = call.out[0];
  for_cuda_type(total.dtype, [&]<class T>() {
    if (call.sum == SumState::fresh)
      map_elements(call.stream, Newest{}, total.count(), total.as<T>(), x.as<const T>());
    else
      map_elements(call.stream, Larger{}, total.count(), total.as<T>(), total.as<const T>(), x.as<const T>());
  });
}

}  // namespace

const CudaKernel keep_largest{.launch = launch_keep_largest};

}  // namespace sextant::cuda
