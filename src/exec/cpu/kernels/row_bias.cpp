#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/blocks.h"

namespace sextant::cpu {

namespace {

void run_row_bias(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const T *x = call.in[0].as<T>(), *bias = call.in[1].as<T>();
    T* y = call.out[0].as<T>();
    int64_t width = call.in[0].shape.last();
    for_blocks(call.team, call.in[0].shape.rows(), rows_per_task(width), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row)
        for (int64_t j = 0; j < width; ++j) y[row * width + j] = x[row * width + j] + bias[j];
    });
  });
}

}  // namespace

const CpuKernel row_bias{.run = run_row_bias};

}  // namespace sextant::cpu
