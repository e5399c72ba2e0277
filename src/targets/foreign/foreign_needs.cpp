#include "targets/foreign/foreign_needs.h"

#include "ops/ops.h"
#include "targets/cuda/gemm_sizes.h"

namespace sextant {

namespace {

// The same library's scratch as ours.
Bytes gemm(const KernelQuery&) {
  return {cuda::kGemmWorkspace};
}

// dq is summed in f32: of packed rows, with as much again for dk and dv.
Bytes attention_sums(const KernelQuery& query) {
  return {2 * query.out[0].shape.count() * size_of(DType::f32)};
}

}  // namespace

// Kernels that are not listed are taken to work in their outputs.
const KernelTable& foreign_kernel_needs() {
  static const KernelTable table{
      {&ops::attention_backward, {attention_sums}}, {&ops::linear, {gemm}},
      {&ops::linear_bias_gradient, {gemm}},         {&ops::linear_gelu, {gemm}},
      {&ops::linear_gelu_gradient, {gemm}},         {&ops::linear_gradients, {gemm}},
      {&ops::linear_input_gradient, {gemm}},        {&ops::linear_weight_gradient, {gemm}},
  };
  return table;
}

}  // namespace sextant
