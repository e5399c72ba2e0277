// Short names for the types that shape functions and examples are made of.
#pragma once

#include "ir/op_def.h"

namespace sextant {

inline TensorType f64(GlobalShape shape) { return {DType::f64, std::move(shape)}; }
inline TensorType i32(GlobalShape shape) { return {DType::i32, std::move(shape)}; }

// 2·m·n·k flops, each operand once through memory.
inline Cost matmul_cost(double m, double n, double k, std::span<const TensorType> in, std::span<const TensorType> out) {
  Cost cost{.flops = {2 * m * n * k}};
  for (const TensorType& t : in) cost.read += t.bytes();
  for (const TensorType& t : out) cost.written += t.bytes();
  return cost;
}

}  // namespace sextant
