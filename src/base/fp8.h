// The two 8-bit floating-point formats of the OCP specification (2023). e4m3 (4 bits of exponent, 3 of mantissa) has no
// infinities and one NaN per sign; e5m2 is a short f16. Into them by rounding to nearest even, saturating at the
// largest number, which infinities become too; back exactly. A NaN stays one.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "base/dtype.h"

namespace sextant {

struct Fp8Format {
  int mantissa_bits;
  int least_exponent;  // of normal numbers
  float largest;
  uint8_t infinity;  // its bits, where the format has one; 0 otherwise
  uint8_t nan;       // the least code of a NaN
};

inline constexpr Fp8Format kE4m3{.mantissa_bits = 3, .least_exponent = -6, .largest = 448, .infinity = 0, .nan = 0x7F};
inline constexpr Fp8Format kE5m2{
    .mantissa_bits = 2, .least_exponent = -14, .largest = 57344, .infinity = 0x7C, .nan = 0x7D};

constexpr bool is_fp8(DType dtype) {
  return dtype == DType::e4m3 || dtype == DType::e5m2;
}
constexpr const Fp8Format& fp8_format(DType dtype) {
  return dtype == DType::e5m2 ? kE5m2 : kE4m3;
}

constexpr uint8_t fp8_bits(const Fp8Format& format, float value) {
  constexpr int kBias = 127, kMantissa = 23;
  auto bits = std::bit_cast<uint32_t>(value);
  auto sign = static_cast<uint8_t>(bits >> 24 & 0x80);
  bits &= 0x7FFFFFFF;
  if (bits > 0x7F800000) return sign | 0x7F;
  float magnitude = std::bit_cast<float>(bits);
  if (magnitude > format.largest) magnitude = format.largest;
  bits = std::bit_cast<uint32_t>(magnitude);
  int shift = kMantissa - format.mantissa_bits;
  if (static_cast<int>(bits >> kMantissa) - kBias < format.least_exponent) {
    // Subnormal: beside this power of two the last place of an f32 is the format's.
    uint32_t place = static_cast<uint32_t>(kBias + format.least_exponent + shift) << kMantissa;
    float sum = magnitude + std::bit_cast<float>(place);
    return sign | static_cast<uint8_t>(std::bit_cast<uint32_t>(sum) - place);
  }
  bits += (uint32_t{1} << (shift - 1)) - 1 + (bits >> shift & 1);
  uint32_t subnormals = static_cast<uint32_t>(kBias + format.least_exponent - 1) << format.mantissa_bits;
  return sign | static_cast<uint8_t>((bits >> shift) - subnormals);
}

constexpr float fp8_value(const Fp8Format& format, uint8_t code) {
  uint8_t magnitude = code & 0x7F;
  float sign = (code & 0x80) != 0 ? -1.0F : 1.0F;
  if (magnitude >= format.nan) return sign * std::numeric_limits<float>::quiet_NaN();
  if (format.infinity != 0 && magnitude == format.infinity) return sign * std::numeric_limits<float>::infinity();
  uint32_t exponent = magnitude >> format.mantissa_bits, mantissa = magnitude & ((1U << format.mantissa_bits) - 1);
  // 2^n for the n of the last place.
  auto power = [](int n) { return std::bit_cast<float>(static_cast<uint32_t>(127 + n) << 23); };
  if (exponent == 0) return sign * static_cast<float>(mantissa) * power(format.least_exponent - format.mantissa_bits);
  return sign * static_cast<float>((1U << format.mantissa_bits) + mantissa) *
         power(static_cast<int>(exponent) - 1 + format.least_exponent - format.mantissa_bits);
}

// Factor that a value is multiplied by before it is rounded, from its largest magnitude `amax`. 1 where amax is not
// positive and finite; never infinite, however small amax is.
constexpr float fp8_scale(const Fp8Format& format, float amax) {
  constexpr float kMost = std::numeric_limits<float>::max();
  if (!(amax > 0) || amax > kMost) return 1;
  float scale = format.largest / amax;
  return scale > kMost ? kMost : scale;
}

}  // namespace sextant
