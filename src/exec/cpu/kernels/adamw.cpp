#include <algorithm>
#include <cmath>

#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/blocks.h"
#include "exec/cpu/kernels/vector_math.h"

namespace sextant::cpu {

namespace {

template <class T>
AdamwRow<T> step_of(const KernelCall& call) {
  double beta1 = call.attrs.real("beta1"), beta2 = call.attrs.real("beta2");
  double lr = static_cast<double>(*call.in[4].as<T>());
  double step = *call.in[6].as<int32_t>();
  return {.p = call.out[0].as<T>(),
          .g = call.in[1].as<T>(),
          .m = call.out[1].as<T>(),
          .v = call.out[2].as<T>(),
          .scale = *call.in[5].as<T>(),
          .beta1 = static_cast<T>(beta1),
          .beta2 = static_cast<T>(beta2),
          .eps = static_cast<T>(call.attrs.real("eps")),
          .keep = static_cast<T>(1 - lr * call.attrs.real("weight_decay")),
          .rate = static_cast<T>(lr / (1 - std::pow(beta1, step))),
          .root = static_cast<T>(1 / std::sqrt(1 - std::pow(beta2, step)))};
}

void run_adamw(const KernelCall& call) {
  for_real_type(call.out[0].dtype, [&]<class T>() {
    AdamwRow<T> step = step_of<T>(call);
    if (step.scale == 0) return;
    for_blocks(call.team, call.out[0].count(), kElementsPerTask, [&](int64_t begin, int64_t end) {
      AdamwRow<T> part = step;
      for (T** state : {&part.p, &part.m, &part.v}) *state += begin;
      part.g += begin;
      adamw_row(part, end - begin);
    });
  });
}

}  // namespace

const CpuKernel adamw{.run = run_adamw};

}  // namespace sextant::cpu
