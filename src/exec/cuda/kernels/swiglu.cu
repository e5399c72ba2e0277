#include "exec/cuda/kernels/gated.cuh"

namespace sextant::cuda {

namespace {

struct Silu {
  static __device__ float sigmoid(float x) { return __fdividef(1.0f, 1.0f + __expf(-x)); }
  static __device__ float value(float g) { return g * sigmoid(g); }
  static __device__ float times_value(float a, float g) { return a * g * sigmoid(g); }
  static __device__ float times_slope(float a, float g) {
    float s = sigmoid(g);
    return a * s * (1.0f + g * (1.0f - s));
  }
};

}  // namespace

const CudaKernel swiglu{.launch = gated_forward<Silu>};
const CudaKernel swiglu_backward{.launch = gated_backward<Silu>};

}  // namespace sextant::cuda
