#include "targets/cuda/cuda_target.h"

#include "targets/cpu/cpu_target.h"

namespace sextant {

namespace {

constexpr int64_t kCudaAlignment = 256;  // as cudaMalloc's

}  // namespace

KernelScratch cuda_scratch(const Op& op, const LocalTypes& in, const LocalTypes& out, Determinism determinism) {
  KernelQuery query{op.attrs, in, out, 1, determinism};
  int64_t kernel = cuda_kernel_needs().workspace(*op.def, query).n;
  if (!op.attrs.has("checked")) return {.check_at = kernel};
  return {.check_at = round_up(kernel, kCudaAlignment), .check = cuda_kernel_needs().check(*op.def, query).n};
}

Target cuda_target(Determinism determinism) {
  return {.name = "cuda",
          .threads = 1,
          .alignment = kCudaAlignment,
          .fusions = {"add_norm", "norm_gradient", "gelu", "gelu_gradient", "gradients", "slot_order", "amax"},
          .computes_in = {DType::bf16, DType::f32, DType::f16},
          .fp8 = true,
          .workspace = [determinism](const Op& op, const LocalTypes& in,
                                     const LocalTypes& out) { return cuda_scratch(op, in, out, determinism).bytes(); },
          .can_check = [](const OpDef& def) { return cuda_kernel_needs().can_check(def); },
          .host_workspace =
              [](const Op& op, const LocalTypes& in, const LocalTypes& out) {
                return cpu_kernel_needs().workspace(*op.def, {op.attrs, in, out, 1});
              },
          .done_together = [](const OpDef& def) { return cuda_kernel_needs().grouping(def) == Grouping::together; }};
}

}  // namespace sextant
