#include "exec/cuda/kernels/elementwise.cuh"
#include "exec/cuda/runtime/kernel.h"

namespace sextant::cuda {

namespace {

struct Swish {
  float beta;
  __device__ float operator()(const float* x) const { return __fdividef(x[0], 1.0f + __expf(-beta * x[0])); }
};

struct SwishGradient {
  float beta;
  __device__ float operator()(const float* dy_x) const {
    float x = dy_x[1], s = __fdividef(1.0f, 1.0f + __expf(-beta * x));
    return dy_x[0] * (s + x * s * (beta * (1.0f - s)));
  }
};

float beta_of(const CudaCall& call) {
  return static_cast<float>(call.attrs.real("beta"));
}

void forward_swish(const CudaCall& call) {
  for_cuda_type(call.in[0].dtype, [&]<class T>() {
    map_elements(call.stream, Swish{beta_of(call)}, call.in[0].count(), call.out[0].as<T>(), call.in[0].as<const T>());
  });
}

void backward_swish(const CudaCall& call) {
  for_cuda_type(call.in[0].dtype, [&]<class T>() {
    map_elements(call.stream, SwishGradient{beta_of(call)}, call.in[0].count(), call.out[0].as<T>(),
                 call.in[0].as<const T>(), call.in[1].as<const T>());
  });
}

}  // namespace

const CudaKernel swish{.launch = forward_swish};
const CudaKernel swish_backward{.launch = backward_swish};

}  // namespace sextant::cuda
