// Measured: which numbers of which tensors a value holds, of those that a run measures while it trains
// (passes/measure_tensors.h).
#pragma once

#include <cstdint>

namespace sextant {

enum class MeasuredTensor : uint8_t {
  activation,           // what a layer hands to the next
  activation_gradient,  // its gradient
  inner_gradient,       // gradients of what its linears read
  fp8_activation,       // what products in fp8 read, forward
  fp8_gradient,         // and of gradients
  attention,            // logits
  gradient,             // of the layer's weights
  weight,               // and their updates
};

enum class MeasuredNumbers : uint8_t {
  sums,     // as the op has them (ops/tensor_statistics.cpp); of gradients the sum of squares alone
  largest,  // magnitude; of logits the largest
};

struct Measured {
  int layer = 0;
  MeasuredTensor tensor = MeasuredTensor::activation;
  MeasuredNumbers numbers = MeasuredNumbers::sums;
  bool operator==(const Measured&) const = default;
};

}  // namespace sextant
