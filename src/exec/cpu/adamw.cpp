#include <algorithm>
#include <cmath>

#include "exec/cpu/blocks.h"
#include "exec/cpu/kernel.h"

namespace sextant::cpu {

namespace {

template <class T>
struct Step {
  T scale, beta1, beta2, eps, decay;  // decay = 1 − lr·weight_decay
  T rate;                             // lr / (1 − beta1^step)
  T root;                             // 1 / sqrt(1 − beta2^step)
};

template <class T>
Step<T> step_of(const KernelCall& call) {
  double beta1 = call.attrs.real("beta1"), beta2 = call.attrs.real("beta2");
  double lr = static_cast<double>(*call.in[4].as<T>());
  double step = *call.in[6].as<int32_t>();
  return {.scale = *call.in[5].as<T>(),
          .beta1 = static_cast<T>(beta1),
          .beta2 = static_cast<T>(beta2),
          .eps = static_cast<T>(call.attrs.real("eps")),
          .decay = static_cast<T>(1 - lr * call.attrs.real("weight_decay")),
          .rate = static_cast<T>(lr / (1 - std::pow(beta1, step))),
          .root = static_cast<T>(1 / std::sqrt(1 - std::pow(beta2, step)))};
}

void run(const KernelCall& call) {
  for_real_type(call.out[0].dtype, [&]<class T>() {
    Step<T> step = step_of<T>(call);
    T *p = call.out[0].as<T>(), *g = call.out[1].as<T>(), *m = call.out[2].as<T>(), *v = call.out[3].as<T>();
    for_blocks(call.team, call.out[0].count(), kElementsPerTask, [&](int64_t begin, int64_t end) {
      if (step.scale != 0) {
        for (int64_t i = begin; i < end; ++i) {
          T gradient = step.scale * g[i];
          m[i] = step.beta1 * m[i] + (1 - step.beta1) * gradient;
          v[i] = step.beta2 * v[i] + (1 - step.beta2) * gradient * gradient;
          p[i] = step.decay * p[i] - step.rate * m[i] / (std::sqrt(v[i]) * step.root + step.eps);
        }
      }
      std::fill(g + begin, g + end, T(0));
    });
  });
}

}  // namespace

const CpuKernel adamw{.run = run};

}  // namespace sextant::cpu
