#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/blocks.h"

namespace sextant::cpu {

namespace {

void run_scale(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const T* x = call.in[0].as<T>();
    T *y = call.out[0].as<T>(), factor = static_cast<T>(call.attrs.real("factor"));
    for_blocks(call.team, call.out[0].count(), kElementsPerTask, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) y[i] = factor * x[i];
    });
  });
}

}  // namespace

const CpuKernel scale{.run = run_scale};

}  // namespace sextant::cpu
