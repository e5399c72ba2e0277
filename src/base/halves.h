// An f32 in two halves of 16 bits: the upper one rounded to bf16, to compute with, and the low bits that rounding took
// away. Together they are the f32 bit for bit: rounding moved the upper half up exactly where the low half's top bit is
// set.
#pragma once

#include <bit>
#include <cstdint>

namespace sextant {

constexpr uint16_t low_half(float x) {
  return static_cast<uint16_t>(std::bit_cast<uint32_t>(x));
}

constexpr uint16_t upper_half(float x) {
  auto bits = std::bit_cast<uint32_t>(x);
  return static_cast<uint16_t>((bits >> 16) + ((bits >> 15) & 1));
}

constexpr float from_halves(uint16_t upper, uint16_t low) {
  return std::bit_cast<float>((static_cast<uint32_t>(static_cast<uint16_t>(upper - (low >> 15))) << 16) | low);
}

}  // namespace sextant
