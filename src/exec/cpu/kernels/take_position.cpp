#include <algorithm>

#include "exec/cpu/kernel.h"

namespace sextant::cpu {

namespace {

void run_take_position(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const LocalShape& shape = call.in[0].shape;
    int64_t length = shape[1], width = shape[2], at = *call.in[1].as<int32_t>();
    const T* x = call.in[0].as<T>();
    T* y = call.out[0].as<T>();
    for (int64_t b = 0; b < shape[0]; ++b) std::copy_n(x + (b * length + at) * width, width, y + b * width);
  });
}

}  // namespace

const CpuKernel take_position{.run = run_take_position};

}  // namespace sextant::cpu
