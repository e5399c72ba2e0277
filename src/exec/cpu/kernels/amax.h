// write_amax: the largest magnitude of what an op wrote, as its last output, where it was told so (attr `amax`).
#pragma once

#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/fp8_numbers.h"

namespace sextant::cpu {

inline void write_amax(const KernelCall& call, const Tensor& written) {
  if (call.attrs.integer_or("amax", 0) == 0) return;
  for_real_type(written.dtype, [&]<class T>() {
    T largest = 0;
    for (int64_t i = 0; i < written.count(); ++i) largest = larger_magnitude(largest, written.as<T>()[i]);
    *call.out.back().as<T>() = largest;
  });
}

}  // namespace sextant::cpu
