// Shared by the AdamW kernels for every format of the moments: the scalars of a step, read on the device, and the rule.
#pragma once

// Every operation is written with its rounding, in the order of the CPU's kernel (exec/cpu/kernels/vector_math.cpp), so
// that a step on host cores (offload.optimizer) has the same bits.
#include "exec/adamw_power.h"
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
    double rate = *lr;
    return {*scale, *lr, static_cast<float>(__ddiv_rn(rate, __dsub_rn(1.0, adamw_power(beta1, *step)))),
            static_cast<float>(__ddiv_rn(1.0, __dsqrt_rn(__dsub_rn(1.0, adamw_power(beta2, *step)))))};
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

  __device__ AdamwRule(const AdamwStep& now, const AdamwConstants& fixed, double weight_decay)
      : step(now), constants(fixed), keep(static_cast<float>(fma(-static_cast<double>(now.lr), weight_decay, 1.0))) {}

  __device__ void operator()(float& p, float g, float& m, float& v) const {
    g = __fmul_rn(g, step.scale);
    m = __fmaf_rn(m, constants.beta1, __fmul_rn(g, __fsub_rn(1.0f, constants.beta1)));
    v = __fmaf_rn(v, constants.beta2, __fmul_rn(__fmul_rn(g, g), __fsub_rn(1.0f, constants.beta2)));
    float change = __fdiv_rn(__fmul_rn(m, step.rate), __fmaf_rn(__fsqrt_rn(v), step.root, constants.eps));
    p = __fmaf_rn(p, keep, -change);
  }
};

}  // namespace sextant::cuda
