// bf16, the upper half of an f32: into it by rounding to nearest even, back exactly. A NaN stays one.
#pragma once

#include <bit>
#include <cstdint>

namespace sextant {

constexpr uint16_t bf16_bits(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if (value != value) return static_cast<uint16_t>(bits >> 16 | 0x40);  // rounding could carry it into an infinity
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

constexpr float bf16_value(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

}  // namespace sextant
