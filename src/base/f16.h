// f16, IEEE half: into it by rounding to nearest even, with subnormals below 2^-14 and infinity from 65520 on; back
// exactly. A NaN stays one.
#pragma once

#include <bit>
#include <cstdint>

namespace sextant {

constexpr uint16_t f16_bits(float value) {
  auto bits = std::bit_cast<uint32_t>(value);
  auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000)
    return static_cast<uint16_t>(sign | 0x7E00 | ((magnitude >> 13) & 0x3FF));  // NaN, made quiet
  if (magnitude >= 0x477FF000) return static_cast<uint16_t>(sign | 0x7C00);     // 65520 and above round to infinity
  if (magnitude < 0x38800000) {  // below 2^-14: a multiple of 2^-24, which adding 1/2 rounds to nearest, ties to even
    float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(0.5f)));
  }
  uint32_t rounded = magnitude + 0xFFF + ((magnitude >> 13) & 1) - (112u << 23);  // the bias is 15 instead of 127
  return static_cast<uint16_t>(sign | (rounded >> 13));
}

constexpr float f16_value(uint16_t bits) {
  uint32_t sign = uint32_t{bits & 0x8000u} << 16;
  uint32_t exponent = bits & 0x7C00;
  uint32_t mantissa = bits & 0x3FF;
  uint32_t magnitude = uint32_t{bits & 0x7FFFu} << 13;
  uint32_t normal = magnitude + (112 << 23);  // the bias is 127 instead of 15
  uint32_t special = magnitude | 0x7F800000;  // infinity and NaN
  uint32_t subnormal = std::bit_cast<uint32_t>(static_cast<float>(static_cast<int32_t>(mantissa)) * 0x1p-24f);
  // Masks, all ones or zero, from carries rather than comparisons: those the compiler would turn into branches, and
  // the loop over elements would not become vector code.
  uint32_t is_subnormal = 0u - ((exponent - 1) >> 31);    // exponent 0
  uint32_t is_special = 0u - ((exponent + 0x400) >> 15);  // exponent 31
  uint32_t value = (subnormal & is_subnormal) | (special & is_special) | (normal & ~(is_subnormal | is_special));
  return std::bit_cast<float>(sign | value);
}

}  // namespace sextant
