// Shared by kernels that read and write fp8: the numbers of all codes, and the largest magnitude.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "base/fp8.h"

namespace sextant::cpu {

using Fp8Numbers = std::array<float, 256>;

constexpr Fp8Numbers all_fp8_numbers(const Fp8Format& format) {
  Fp8Numbers numbers{};
  for (int code = 0; code < 256; ++code)
    numbers[static_cast<size_t>(code)] = fp8_value(format, static_cast<uint8_t>(code));
  return numbers;
}

inline const Fp8Numbers& fp8_numbers(DType dtype) {
  static constexpr Fp8Numbers kOfE4m3 = all_fp8_numbers(kE4m3), kOfE5m2 = all_fp8_numbers(kE5m2);
  return dtype == DType::e5m2 ? kOfE5m2 : kOfE4m3;
}

// The largest magnitude so far; a NaN stays.
template <class T>
T larger_magnitude(T so_far, T x) {
  T magnitude = std::abs(x);
  return magnitude <= so_far || std::isnan(so_far) ? so_far : magnitude;
}

}  // namespace sextant::cpu
