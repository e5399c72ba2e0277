#include "exec/cuda/runtime/kernel.h"
#include "exec/loss_scaling_rule.h"

namespace sextant::cuda {

namespace {

__global__ void scale_kernel(const float* seed, const float* scale, float initial, float* y) {
  *y = *seed * (*scale > 0.0f ? *scale : initial);
}

void launch_scale_seed(const CudaCall& call) {
  scale_kernel<<<1, 1, 0, call.stream>>>(call.in[0].as<float>(), call.in[1].as<float>(),
                                         static_cast<float>(call.attrs.real("initial")), call.out[0].as<float>());
}

struct ScalingNumbers {
  const float* squares;
  float *norm, *scale, *loss_scale, *used;
  int32_t* good_steps;
};

__global__ void clip_kernel(LossScalingRule rule, ScalingNumbers numbers) {
  LossScalingRule::Next next =
      rule.after(static_cast<double>(*numbers.squares), *numbers.loss_scale, *numbers.good_steps);
  *numbers.norm = static_cast<float>(next.norm);
  *numbers.scale = static_cast<float>(next.scale);
  *numbers.loss_scale = next.loss_scale;
  *numbers.good_steps = next.good_steps;
  *numbers.used = next.used;
}

void launch_clip_scaled(const CudaCall& call) {
  ScalingNumbers numbers{.squares = call.in[0].as<float>(),
                         .norm = call.out[0].as<float>(),
                         .scale = call.out[1].as<float>(),
                         .loss_scale = call.out[2].as<float>(),
                         .used = call.out[4].as<float>(),
                         .good_steps = call.out[3].as<int32_t>()};
  clip_kernel<<<1, 1, 0, call.stream>>>(LossScalingRule(call.attrs), numbers);
}

}  // namespace

const CudaKernel scale_seed{.launch = launch_scale_seed};
const CudaKernel clip_scaled{.launch = launch_clip_scaled};

}  // namespace sextant::cuda
