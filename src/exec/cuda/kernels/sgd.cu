#include "exec/cuda/kernels/parameter_step.cuh"

namespace sextant::cuda {

namespace {

struct Plain {
  const float *lr, *scale;
  float decay;

  struct Now {
    float lr, scale, decay;
    __device__ bool skip() const { return scale == 0.0f; }
    __device__ void operator()(float& p, float g, float*) const { p -= lr * (scale * g + decay * p); }
  };
  __device__ Now now() const { return {*lr, *scale, decay}; }
};

struct Momentum {
  const float *lr, *scale;
  float decay, momentum;
  bool nesterov;

  struct Now {
    float lr, scale, decay, momentum;
    bool nesterov;
    __device__ bool skip() const { return scale == 0.0f; }
    __device__ void operator()(float& p, float g, float* m) const {
      float gradient = scale * g + decay * p;
      *m = momentum * *m + gradient;
      p -= lr * (nesterov ? gradient + momentum * *m : *m);
    }
  };
  __device__ Now now() const { return {*lr, *scale, decay, momentum, nesterov}; }
};

float decay_of(const CudaCall& call) {
  return static_cast<float>(call.attrs.real("weight_decay"));
}

void launch_plain(const CudaCall& call) {
  step_parameter(call,
                 StepTensors<0>{.p = call.out[0].data,
                                .g = call.in[1].as<float>(),
                                .states = {},
                                .low = low_of(call, 1),
                                .count = call.out[0].count()},
                 Plain{call.in[2].as<float>(), call.in[3].as<float>(), decay_of(call)});
}

void launch_momentum(const CudaCall& call) {
  step_parameter(call,
                 StepTensors<1>{.p = call.out[0].data,
                                .g = call.in[1].as<float>(),
                                .states = {call.out[1].as<float>()},
                                .low = low_of(call, 2),
                                .count = call.out[0].count()},
                 Momentum{call.in[3].as<float>(), call.in[4].as<float>(), decay_of(call),
                          static_cast<float>(call.attrs.real("momentum")), call.attrs.integer("nesterov") != 0});
}

}  // namespace

const CudaKernel sgd{.launch = launch_plain};
const CudaKernel sgd_momentum{.launch = launch_momentum};

}  // namespace sextant::cuda
