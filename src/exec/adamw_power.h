// beta^step as AdamW corrects its means by it: products alone, in an order that the exponent decides, so that the host
// and a GPU have the same bits.
#pragma once

#include <cstdint>

namespace sextant {

constexpr double adamw_power(double beta, int64_t step) {
  double result = 1;
  for (; step > 0; step /= 2, beta *= beta)
    if (step % 2 == 1) result *= beta;
  return result;
}

}  // namespace sextant
