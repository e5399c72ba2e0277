#include "exec/cpu/kernel.h"

namespace sextant::cpu {

namespace {

void run_balance_bias(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    if (*call.in[2].as<T>() == 0) return;
    T* bias = call.out[0].as<T>();
    const T* counts = call.in[1].as<T>();
    int64_t n = call.in[1].count();
    double sum = 0;  // of whole numbers, so that equality with the mean is exact
    for (int64_t e = 0; e < n; ++e) sum += static_cast<double>(counts[e]);
    auto speed = static_cast<T>(call.attrs.real("speed"));
    for (int64_t e = 0; e < n; ++e) {
      double load = static_cast<double>(counts[e]) * static_cast<double>(n);
      if (load < sum) bias[e] += speed;
      if (load > sum) bias[e] -= speed;
    }
  });
}

}  // namespace

const CpuKernel balance_bias{.run = run_balance_bias};

}  // namespace sextant::cpu
