// Short names for the types that shape functions and examples are made of.
#pragma once

#include "ir/op_def.h"

namespace sextant {

inline TensorType f64(GlobalShape shape) {
  return {DType::f64, std::move(shape)};
}
inline TensorType i32(GlobalShape shape) {
  return {DType::i32, std::move(shape)};
}

// GEMMs of the given sizes, each operand of the op once through memory.
inline Cost gemms_cost(std::vector<Gemm> gemms, std::span<const TensorType> in, std::span<const TensorType> out) {
  Cost cost{.gemms = std::move(gemms)};
  for (const Gemm& gemm : cost.gemms) cost.flops += {gemm.flops()};
  for (const TensorType& t : in) cost.read += t.bytes();
  for (const TensorType& t : out) cost.written += t.bytes();
  return cost;
}

}  // namespace sextant
