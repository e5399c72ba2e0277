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

// A gradient is kept in f32, and what is added to it may come in 16 bits.
void launch(const CudaCall& call) {
  const Tensor &x = call.in[1], &total = call.out[0];
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
