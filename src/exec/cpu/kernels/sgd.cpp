#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/blocks.h"

namespace sextant::cpu {

namespace {

void run_plain(const KernelCall& call) {
  for_real_type(call.out[0].dtype, [&]<class T>() {
    T *p = call.out[0].as<T>(), *g = call.in[1].as<T>();
    T lr = *call.in[2].as<T>(), scale = *call.in[3].as<T>();
    auto decay = static_cast<T>(call.attrs.real("weight_decay"));
    if (scale == 0) return;
    for_blocks(call.team, call.out[0].count(), kElementsPerTask, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) p[i] -= lr * (scale * g[i] + decay * p[i]);
    });
  });
}

void run_sgd_momentum(const KernelCall& call) {
  for_real_type(call.out[0].dtype, [&]<class T>() {
    T *p = call.out[0].as<T>(), *g = call.in[1].as<T>(), *m = call.out[1].as<T>();
    T lr = *call.in[3].as<T>(), scale = *call.in[4].as<T>();
    auto decay = static_cast<T>(call.attrs.real("weight_decay"));
    auto momentum = static_cast<T>(call.attrs.real("momentum"));
    bool nesterov = call.attrs.integer("nesterov") != 0;
    if (scale == 0) return;
    for_blocks(call.team, call.out[0].count(), kElementsPerTask, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        T gradient = scale * g[i] + decay * p[i];
        m[i] = momentum * m[i] + gradient;
        p[i] -= lr * (nesterov ? gradient + momentum * m[i] : m[i]);
      }
    });
  });
}

}  // namespace

const CpuKernel sgd{.run = run_plain};
const CpuKernel sgd_momentum{.run = run_sgd_momentum};

}  // namespace sextant::cpu
