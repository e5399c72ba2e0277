// The scratch of products in fp8: both operands as numbers, and the GEMM's own.
#pragma once

#include <cstdint>

#include "base/dtype.h"
#include "base/units.h"
#include "targets/cpu/gemm_sizes.h"

namespace sextant::cpu {

struct Fp8ProductSizes {
  int64_t m, n, k;
  int64_t element;  // bytes of a number

  int64_t a_bytes() const { return round_up(m * k * element, 64); }
  int64_t b_bytes() const { return round_up(n * k * element, 64); }
  int64_t bytes(int threads) const { return a_bytes() + b_bytes() + multiply_workspace(n, k, threads); }
};

// Of c[m n] = a·bᵀ, from the elements of its operands.
inline Fp8ProductSizes fp8_product_sizes(int64_t a, int64_t b, int64_t columns, DType wide) {
  int64_t k = columns > 0 ? b / columns : 0;
  return {.m = k > 0 ? a / k : 0, .n = columns, .k = k, .element = size_of(wide)};
}

}  // namespace sextant::cpu
