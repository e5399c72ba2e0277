#include "targets/cuda/cuda_target.h"

#include "targets/cpu/cpu_target.h"

namespace sextant {

namespace {

constexpr int64_t kCudaAlignment = 256;  // as cudaMalloc's

}  // namespace

Target cuda_target(Determinism determinism) {
  return {.name = "cuda",
          .threads = 1,
          .alignment = kCudaAlignment,
          .fusions = {"add_norm", "norm_gradient", "gelu", "gelu_gradient", "gradients", "slot_order", "amax"},
          .computes_in = {DType::bf16, DType::f32, DType::f16},
          .fp8 = true,
          .workspace =
              [determinism](const Op& op, const LocalTypes& in, const LocalTypes& out) {
                return cuda_kernel_needs().workspace(*op.def, {op.attrs, in, out, 1, determinism});
              },
          .host_workspace =
              [](const Op& op, const LocalTypes& in, const LocalTypes& out) {
                return cpu_kernel_needs().workspace(*op.def, {op.attrs, in, out, 1});
              },
          .done_together = [](const OpDef& def) { return cuda_kernel_needs().grouping(def) == Grouping::together; }};
}

}  // namespace sextant
