#include "exec/cuda/kernels/elementwise.cuh"
#include "exec/cuda/runtime/kernel.h"

namespace sextant::cuda {

namespace {

constexpr float kRoot = 0.7978845608028654f;  // sqrt(2/pi)
constexpr float kCubic = 0.044715f;

// (1 + tanh(u))/2 = 1/(1 + exp(−2u)): one exponential, where tanh itself would be many instructions.
__device__ float gate_of(float x) {
  float u = kRoot * x * (1.0f + kCubic * x * x);
  return __fdividef(1.0f, 1.0f + __expf(-2.0f * u));
}

struct Gelu {
  __device__ float operator()(const float* x) const { return x[0] * gate_of(x[0]); }
};

struct GeluGradient {
  __device__ float operator()(const float* dy_x) const {
    float x = dy_x[1], gate = gate_of(x);
    float slope_of_u = kRoot * (1.0f + 3.0f * kCubic * x * x);
    return dy_x[0] * (gate + 2.0f * x * gate * (1.0f - gate) * slope_of_u);
  }
};

struct GeluErf {
  __device__ float operator()(const float* x) const { return x[0] * normcdff(x[0]); }
};

struct GeluErfGradient {
  __device__ float operator()(const float* dy_x) const {
    constexpr float kDensity = 0.3989422804014327f;  // 1/sqrt(2 pi)
    float x = dy_x[1];
    return dy_x[0] * (normcdff(x) + x * kDensity * __expf(-0.5f * x * x));
  }
};

template <class Function>
void forward(const CudaCall& call) {
  for_cuda_type(call.in[0].dtype, [&]<class T>() {
    map_elements(call, Function{}, call.in[0].count(), call.out[0].as<T>(), call.in[0].as<const T>());
  });
}

template <class Function>
void backward(const CudaCall& call) {
  for_cuda_type(call.in[0].dtype, [&]<class T>() {
    map_elements(call, Function{}, call.in[0].count(), call.out[0].as<T>(), call.in[0].as<const T>(),
                 call.in[1].as<const T>());
  });
}

}  // namespace

const CudaKernel gelu{.launch = forward<Gelu>};
const CudaKernel gelu_backward{.launch = backward<GeluGradient>};
const CudaKernel gelu_erf{.launch = forward<GeluErf>};
const CudaKernel gelu_erf_backward{.launch = backward<GeluErfGradient>};

}  // namespace sextant::cuda
