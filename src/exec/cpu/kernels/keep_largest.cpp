#include <cmath>

#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/blocks.h"

namespace sextant::cpu {

namespace {

void run_keep_largest(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    T* total = call.out[0].as<T>();
    const T* x = call.in[1].as<T>();
    for_blocks(call.team, call.in[1].count(), kElementsPerTask, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        bool kept = call.sum == SumState::running && (x[i] <= total[i] || std::isnan(total[i]));
        if (!kept) total[i] = x[i];
      }
    });
  });
}

}  // namespace

const CpuKernel keep_largest{.run = run_keep_largest};

}  // namespace sextant::cpu
