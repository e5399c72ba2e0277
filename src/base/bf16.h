// bf16, the upper half of an f32: into it by rounding to nearest even, back exactly. A NaN stays one.
#pragma once

#include <bit>
#include <cstdint>

namespace sextant {

constexpr uint16_t bf16_bits(float value) {
  auto bits = std::bit_cast<uint32_t>(value);
  uint32_t rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
  // Rounding could carry a NaN into infinity; keep its upper bits and make it quiet.
  uint32_t nan = (bits >> 16) | 0x40;
  return static_cast<uint16_t>((bits & 0x7FFFFFFF) > 0x7F800000 ? nan : rounded);
}

constexpr float bf16_value(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

}  // namespace sextant
