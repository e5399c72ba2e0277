#include <algorithm>
#include <cmath>

#include "exec/cpu/kernel.h"

namespace sextant::cpu {

namespace {

void run_load_statistics(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const T* counts = call.in[0].as<T>();
    int64_t n = call.in[0].count();
    double sum = 0, most = 0, entropy = 0, unused = 0;
    for (int64_t e = 0; e < n; ++e) {
      sum += static_cast<double>(counts[e]);
      most = std::max(most, static_cast<double>(counts[e]));
    }
    for (int64_t e = 0; e < n; ++e) {
      double share = static_cast<double>(counts[e]) / sum;
      if (share > 0) entropy -= share * std::log(share);
      if (counts[e] == 0) unused += 1;
    }
    auto experts = static_cast<double>(n);
    *call.out[0].as<T>() = static_cast<T>(most * experts / sum);
    *call.out[1].as<T>() = static_cast<T>(n > 1 ? entropy / std::log(experts) : 1);
    *call.out[2].as<T>() = static_cast<T>(unused);
  });
}

}  // namespace

const CpuKernel load_statistics{.run = run_load_statistics};

}  // namespace sextant::cpu
