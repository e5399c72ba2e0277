// bf16, the upper half of an f32: into it by rounding to nearest even or at random, back exactly. A NaN stays one.
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

// Stochastic rounding: to one of the two neighbours, to the farther from zero with the probability that makes the mean
// `value`. `random` has 16 uniform bits: as many as are dropped, so the probability is exact.
constexpr uint16_t bf16_bits_at_random(float value, uint32_t random) {
  auto bits = std::bit_cast<uint32_t>(value);
  bool finite = (bits & 0x7F800000) != 0x7F800000;
  return finite ? static_cast<uint16_t>((bits + (random & 0xFFFF)) >> 16) : bf16_bits(value);
}

constexpr float bf16_value(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

}  // namespace sextant
