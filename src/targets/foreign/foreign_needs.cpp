#include "targets/foreign/foreign_needs.h"

#include "ops/ops.h"
#include "targets/cuda/gemm_sizes.h"

namespace sextant {

namespace {

// The same library's scratch as ours.
Bytes product(const KernelQuery&) {
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
      {&ops::attention_backward, {attention_sums}}, {&ops::linear, {product}},
      {&ops::linear_bias_gradient, {product}},      {&ops::linear_gelu, {product}},
      {&ops::linear_gelu_gradient, {product}},      {&ops::linear_gradients, {product}},
      {&ops::linear_input_gradient, {product}},     {&ops::linear_weight_gradient, {product}},
  };
  return table;
}

}  // namespace sextant
