#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/blocks.h"

namespace sextant::cpu {

namespace {

void run_add(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const T* a = call.in[0].as<T>();
    const T* b = call.in[1].as<T>();
    T* y = call.out[0].as<T>();
    for_blocks(call.team, call.out[0].count(), kElementsPerTask, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) y[i] = a[i] + b[i];
    });
  });
}

}  // namespace

const CpuKernel add{.run = run_add};

}  // namespace sextant::cpu
