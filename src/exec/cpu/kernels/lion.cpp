#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/blocks.h"

namespace sextant::cpu {

namespace {

template <class T>
T sign(T x) {
  return static_cast<T>((x > 0) - (x < 0));
}

void run_lion(const KernelCall& call) {
  for_real_type(call.out[0].dtype, [&]<class T>() {
    T *p = call.out[0].as<T>(), *g = call.in[1].as<T>(), *m = call.out[1].as<T>();
    T lr = *call.in[3].as<T>(), scale = *call.in[4].as<T>();
    auto beta1 = static_cast<T>(call.attrs.real("beta1")), beta2 = static_cast<T>(call.attrs.real("beta2"));
    auto keep = static_cast<T>(1 - static_cast<double>(lr) * call.attrs.real("weight_decay"));
    if (scale == 0) return;
    for_blocks(call.team, call.out[0].count(), kElementsPerTask, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        T gradient = scale * g[i];
        p[i] = keep * p[i] - lr * sign(beta1 * m[i] + (1 - beta1) * gradient);
        m[i] = beta2 * m[i] + (1 - beta2) * gradient;
      }
    });
  });
}

}  // namespace

const CpuKernel lion{.run = run_lion};

}  // namespace sextant::cpu
