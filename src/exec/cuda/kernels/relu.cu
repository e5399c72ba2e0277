#include "exec/cuda/kernels/elementwise.cuh"
#include "exec/cuda/runtime/kernel.h"

namespace sextant::cuda {

namespace {

// Comparisons are such that NaN goes in and NaN comes out.
struct Relu {
  __device__ float operator()(const float* x) const { return x[0] < 0 ? 0.0f : x[0]; }
};

struct ReluGradient {
  __device__ float operator()(const float* dy_y) const { return dy_y[1] == 0 ? 0.0f : dy_y[0]; }
};

struct SquaredRelu {
  __device__ float operator()(const float* x) const { return x[0] < 0 ? 0.0f : x[0] * x[0]; }
};

struct SquaredReluGradient {
  __device__ float operator()(const float* dy_x) const { return dy_x[1] < 0 ? 0.0f : 2.0f * dy_x[1] * dy_x[0]; }
};

template <class Function>
void forward(const CudaCall& call) {
  for_cuda_type(call.in[0].dtype, [&]<class T>() {
    map_elements(call.stream, Function{}, call.in[0].count(), call.out[0].as<T>(), call.in[0].as<const T>());
  });
}

template <class Function>
void backward(const CudaCall& call) {
  for_cuda_type(call.in[0].dtype, [&]<class T>() {
    map_elements(call.stream, Function{}, call.in[0].count(), call.out[0].as<T>(), call.in[0].as<const T>(),
                 call.in[1].as<const T>());
  });
}

}  // namespace

const CudaKernel relu{.launch = forward<Relu>};
const CudaKernel relu_backward{.launch = backward<ReluGradient>};
const CudaKernel squared_relu{.launch = forward<SquaredRelu>};
const CudaKernel squared_relu_backward{.launch = backward<SquaredReluGradient>};

}  // namespace sextant::cuda
