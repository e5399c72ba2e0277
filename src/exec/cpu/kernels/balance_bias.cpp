#include <algorithm>

#include "exec/cpu/kernel.h"

namespace sextant::cpu {

namespace {

void run_balance_bias(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    T* bias = call.out[0].as<T>();
    const T* counts = call.in[1].as<T>();
    int64_t n = call.in[1].count();
    bool skipped = *call.in[2].as<T>() == 0;
    double sum = 0;  // of whole numbers, so that equality with the mean is exact
    for (int64_t e = 0; e < n; ++e) sum += static_cast<double>(counts[e]);
    auto speed = static_cast<T>(call.attrs.real("speed"));
    for (int64_t e = 0; e < n && !skipped; ++e) {
      double load = static_cast<double>(counts[e]) * static_cast<double>(n);
      if (load < sum) bias[e] += speed;
      if (load > sum) bias[e] -= speed;
    }
    auto [least, most] = std::minmax_element(bias, bias + n);
    *call.out[1].as<T>() = *least;
    *call.out[2].as<T>() = *most;
  });
}

}  // namespace

const CpuKernel balance_bias{.run = run_balance_bias};

}  // namespace sextant::cpu
