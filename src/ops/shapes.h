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

// Products of the given sizes, each operand of the op once through memory.
inline Cost products_cost(std::vector<Product> products, std::span<const TensorType> in,
                          std::span<const TensorType> out) {
  Cost cost{.products = std::move(products)};
  for (const Product& product : cost.products) cost.flops += {product.flops()};
  for (const TensorType& t : in) cost.read += t.bytes();
  for (const TensorType& t : out) cost.written += t.bytes();
  return cost;
}

}  // namespace sextant
