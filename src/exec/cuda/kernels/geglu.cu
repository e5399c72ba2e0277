#include "exec/cuda/kernels/gated.cuh"

namespace sextant::cuda {

namespace {

// In its tanh form: g·(1 + tanh(u))/2 with u = sqrt(2/pi)·(g + 0.044715·g³).
struct Gelu {
  static constexpr float kRoot = 0.7978845608028654f;  // sqrt(2/pi)
  static constexpr float kCubic = 0.044715f;

  // (1 + tanh(u))/2 = 1/(1 + exp(−2u)).
  static __device__ float share(float g) {
    float u = kRoot * g * (1.0f + kCubic * g * g);
    return __fdividef(1.0f, 1.0f + __expf(-2.0f * u));
  }
  static __device__ float value(float g) { return g * share(g); }
  static __device__ float times_value(float a, float g) { return a * g * share(g); }
  static __device__ float times_slope(float a, float g) {
    float s = share(g), slope_of_u = kRoot * (1.0f + 3.0f * kCubic * g * g);
    return a * (s + 2.0f * g * s * (1.0f - s) * slope_of_u);
  }
};

}  // namespace

const CudaKernel geglu{.launch = gated_forward<Gelu>};
const CudaKernel geglu_backward{.launch = gated_backward<Gelu>};

}  // namespace sextant::cuda
