#include "exec/cpu/kernel.h"
#include "exec/loss_scaling_rule.h"

namespace sextant::cpu {

namespace {

void run_scale_seed(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    T scale = *call.in[1].as<T>();
    *call.out[0].as<T>() = *call.in[0].as<T>() * (scale > 0 ? scale : static_cast<T>(call.attrs.real("initial")));
  });
}

void run_clip_scaled(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    LossScalingRule::Next next = LossScalingRule(call.attrs)
                                     .after(static_cast<double>(*call.in[0].as<T>()),
                                            static_cast<float>(*call.in[1].as<T>()), *call.in[2].as<int32_t>());
    *call.out[0].as<T>() = static_cast<T>(next.norm);
    *call.out[1].as<T>() = static_cast<T>(next.scale);
    *call.out[2].as<T>() = static_cast<T>(next.loss_scale);
    *call.out[3].as<int32_t>() = next.good_steps;
    *call.out[4].as<T>() = static_cast<T>(next.used);
  });
}

}  // namespace

const CpuKernel scale_seed{.run = run_scale_seed};
const CpuKernel clip_scaled{.run = run_clip_scaled};

}  // namespace sextant::cpu
