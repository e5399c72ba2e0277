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
inline TensorType u8(GlobalShape shape) {
  return {DType::u8, std::move(shape)};
}
inline TensorType i64(GlobalShape shape) {
  return {DType::i64, std::move(shape)};
}

// Outputs of an op that updates some of its inputs in place: a weight and its states (`updated`), and, where it is
// given, the input `low` behind all others, the low bits of a weight that is computed with in 16 (ops/adamw.cpp).
inline TensorTypes updated_types(std::span<const TensorType> in, std::initializer_list<size_t> updated, size_t low) {
  TensorTypes out;
  for (size_t i : updated) out.push_back(in[i]);
  if (in.size() > low) out.push_back(in[low]);
  return out;
}

// And, with attr amax=1, the largest magnitude of the first of them (ops/quantize.cpp).
inline TensorTypes with_amax(const Attrs& attrs, TensorTypes types) {
  if (attrs.integer_or("amax", 0) != 0) types.push_back({wide_of(types[0].dtype), GlobalShape{}});
  return types;
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
