#include "exec/cuda/kernels/elementwise.cuh"
#include "exec/cuda/runtime/kernel.h"

namespace sextant::cuda {

namespace {

struct Scaled {
  float factor;
  __device__ float operator()(const float* x) const { return factor * x[0]; }
};

void launch(const CudaCall& call) {
  for_cuda_type(call.out[0].dtype, [&]<class T>() {
    map_elements(call.stream, Scaled{static_cast<float>(call.attrs.real("factor"))}, call.out[0].count(),
                 call.out[0].as<T>(), call.in[0].as<const T>());
  });
}

}  // namespace

const CudaKernel scale{.launch = launch};

}  // namespace sextant::cuda
