#include "exec/cuda/kernels/parameter_step.cuh"

namespace sextant::cuda {

namespace {

struct Lion {
  const float *lr, *scale;
  float beta1, beta2, decay;

  struct Now {
    float lr, scale, beta1, beta2, keep;
    __device__ bool skip() const { return scale == 0.0f; }
    __device__ void operator()(float& p, float g, float* m) const {
      float gradient = scale * g, mixed = beta1 * *m + (1.0f - beta1) * gradient;
      p = keep * p - lr * static_cast<float>((mixed > 0.0f) - (mixed < 0.0f));
      *m = beta2 * *m + (1.0f - beta2) * gradient;
    }
  };
  __device__ Now now() const { return {*lr, *scale, beta1, beta2, 1.0f - *lr * decay}; }
};

void launch(const CudaCall& call) {
  auto real = [&](const char* name) { return static_cast<float>(call.attrs.real(name)); };
  step_parameter(
      call,
      StepTensors<1>{.p = call.out[0].data,
                     .g = call.in[1].as<float>(),
                     .states = {call.out[1].as<float>()},
                     .low = low_of(call, 2),
                     .count = call.out[0].count()},
      Lion{call.in[3].as<float>(), call.in[4].as<float>(), real("beta1"), real("beta2"), real("weight_decay")});
}

}  // namespace

const CudaKernel lion{.launch = launch};

}  // namespace sextant::cuda
