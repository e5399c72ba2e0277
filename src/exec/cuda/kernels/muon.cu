#include "exec/cuda/kernels/parameter_step.cuh"

namespace sextant::cuda {

namespace {

// u lies apart from m, and a skipped step leaves m as it is.
__global__ void __launch_bounds__(kStepThreads)
    momentum_kernel(const float* g, float* u, float* m, const float* scale, float momentum, bool nesterov, int64_t n) {
  int64_t i = static_cast<int64_t>(blockIdx.x) * kStepThreads + threadIdx.x;
  if (i >= n) return;
  float gradient = *scale * g[i], mean = m[i];
  if (*scale != 0.0f) mean += (1.0f - momentum) * (gradient - mean);
  m[i] = mean;
  u[i] = nesterov ? gradient + momentum * (mean - gradient) : mean;
}

void launch_momentum(const CudaCall& call) {
  int64_t n = call.in[0].count();
  if (n == 0) return;
  momentum_kernel<<<static_cast<unsigned>(ceil_div(n, kStepThreads)), kStepThreads, 0, call.stream>>>(
      call.in[0].as<float>(), call.out[0].as<float>(), call.out[1].as<float>(), call.in[2].as<float>(),
      static_cast<float>(call.attrs.real("momentum")), call.attrs.integer("nesterov") != 0, n);
}

struct Step {
  const float *lr, *scale;
  float decay;

  struct Now {
    float lr, scale, keep;
    __device__ bool skip() const { return scale == 0.0f; }
    __device__ void operator()(float& p, float u, float*) const { p = keep * p - lr * u; }
  };
  __device__ Now now() const { return {*lr, *scale, 1.0f - *lr * decay}; }
};

void launch_step(const CudaCall& call) {
  step_parameter(
      call,
      StepTensors<0>{.p = call.out[0].data,
                     .g = call.in[1].as<float>(),
                     .states = {},
                     .low = low_of(call, 1),
                     .count = call.out[0].count()},
      Step{call.in[2].as<float>(), call.in[3].as<float>(), static_cast<float>(call.attrs.real("weight_decay"))});
}

}  // namespace

const CudaKernel muon_momentum{.launch = launch_momentum};
const CudaKernel muon_step{.launch = launch_step};

}  // namespace sextant::cuda
