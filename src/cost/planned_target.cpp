#include "cost/planned_target.h"

#include "ops/ops.h"
#include "targets/cuda/gemm_sizes.h"

namespace sextant {

namespace {

// Products have cuBLASLt's scratch there too.
Bytes product(const KernelQuery&) {
  return {cuda::kGemmWorkspace};
}

// dq is summed in f32: of packed rows, with as much again for dk and dv.
Bytes attention_sums(const KernelQuery& query) {
  return {2 * query.out[0].shape.count() * size_of(DType::f32)};
}

// What every other software is taken to need; kernels that are not listed are taken to work in their outputs.
const KernelTable& foreign_kernel_needs() {
  static const KernelTable table{
      {&ops::attention_backward, {attention_sums}}, {&ops::linear, {product}},
      {&ops::linear_bias_gradient, {product}},      {&ops::linear_gelu, {product}},
      {&ops::linear_gelu_gradient, {product}},      {&ops::linear_gradients, {product}},
      {&ops::linear_input_gradient, {product}},     {&ops::linear_weight_gradient, {product}},
  };
  return table;
}

}  // namespace

Target overlay(Target target, const SoftwareProfile& profile) {
  if (profile.kernels == Kernels::ours) return target;
  target.name = "accelerator";
  if (profile.elementwise != Elementwise::fused) target.fusions = {};
  target.workspace = [](const Op& op, const LocalTypes& in, const LocalTypes& out) {
    return foreign_kernel_needs().workspace(*op.def, {op.attrs, in, out});
  };
  target.done_together = [](const OpDef& def) { return foreign_kernel_needs().grouping(def) == Grouping::together; };
  return target;
}

Target planned_target(const SoftwareProfile& profile, Determinism determinism) {
  return overlay(cuda_target(determinism), profile);
}

}  // namespace sextant
