#include "cost/accelerator.h"

namespace sextant {

Target accelerator_target(const SoftwareProfile& profile) {
  constexpr int64_t kProductScratch = 32 << 20;  // cuBLASLt's
  Target target{
      .name = "accelerator", .threads = 1, .alignment = 256, .fusions = {}, .computes_in = {DType::bf16, DType::f32}};
  if (profile.elementwise == Elementwise::fused)
    target.fusions = {"add_norm", "norm_gradient", "gelu", "gelu_gradient", "gradients"};
  target.workspace = [](const Op& op, const LocalTypes&, const LocalTypes& out) -> Bytes {
    // Attention's backward sums dq in f32; products have the library's scratch.
    if (op.def->name == "attention_backward") return {2 * out[0].shape.count() * size_of(DType::f32)};
    return {op.def->name.starts_with("linear") ? kProductScratch : 0};
  };
  return target;
}

}  // namespace sextant
