// What the steps of AdamW share, however its means are kept: the numbers of a step, read on the device, and the rule.
#pragma once

#include "exec/cuda/runtime/kernel.h"

namespace sextant::cuda {

// Its numbers change from step to step: rate = lr/(1−beta1^step), root = 1/sqrt(1−beta2^step).
struct AdamwStep {
  float scale, lr, rate, root;
};

struct AdamwInputs {
  const float *lr, *scale;
  const int32_t* step;
  double beta1, beta2;
  bool operator==(const AdamwInputs&) const = default;

  __device__ AdamwStep now() const {
    double rate = *lr, count = *step;
    return {*scale, *lr, static_cast<float>(rate / (1.0 - pow(beta1, count))),
            static_cast<float>(1.0 / sqrt(1.0 - pow(beta2, count)))};
  }
};

inline AdamwInputs adamw_inputs(const CudaCall& call) {
  return {call.in[4].as<float>(), call.in[5].as<float>(), call.in[6].as<int32_t>(), call.attrs.real("beta1"),
          call.attrs.real("beta2")};
}

struct AdamwConstants {
  float beta1, beta2, eps;
};

inline AdamwConstants adamw_constants(const CudaCall& call) {
  return {static_cast<float>(call.attrs.real("beta1")), static_cast<float>(call.attrs.real("beta2")),
          static_cast<float>(call.attrs.real("eps"))};
}

struct AdamwRule {
  AdamwStep step;
  AdamwConstants constants;
  float keep;

  __device__ AdamwRule(const AdamwStep& now, const AdamwConstants& fixed, float weight_decay)
      : step(now), constants(fixed), keep(1.0f - now.lr * weight_decay) {}

  __device__ void operator()(float& p, float g, float& m, float& v) const {
    g *= step.scale;
    m = constants.beta1 * m + (1.0f - constants.beta1) * g;
    v = constants.beta2 * v + (1.0f - constants.beta2) * g * g;
    p = keep * p - step.rate * m / (step.root * sqrtf(v) + constants.eps);
  }
};

}  // namespace sextant::cuda
