#include "exec/cuda/runtime/kernel.h"

#include "base/error.h"

namespace sextant {

const CudaKernel& cuda_kernel(const OpDef& def) {
  static constexpr const CudaKernel* kKernels[] = {
#define OP(name) &cuda::name,
#include "ops/ops.def"
#undef OP
  };
  std::span<const OpDef* const> ops = all_ops();  // made from the same list, so the indices agree
  for (size_t i = 0; i < ops.size(); ++i)
    if (ops[i] == &def) return *kKernels[i];
  BUG("op {} is not in ops.def", def.name);
}

}  // namespace sextant
