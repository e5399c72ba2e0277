// The angle by which RoPE turns pair j of a head from one position to the next, on any device.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

#include "ir/attrs.h"

namespace sextant {

// Llama 3 stretches wavelengths that are long beside the context the model was first trained on, blends the middle ones
// and leaves the short ones.
inline double rope_frequency(const Attrs& attrs, int64_t j, int64_t dim) {
  double plain = std::pow(attrs.real("theta"), -2.0 * static_cast<double>(j) / static_cast<double>(dim));
  if (!attrs.has("scale_factor")) return plain;
  double stretched = plain / attrs.real("scale_factor");
  double low = attrs.real("low_freq_factor"), high = attrs.real("high_freq_factor");
  double turns = attrs.real("original_max_positions") * plain / (2 * std::numbers::pi);  // over the first context
  if (turns < low) return stretched;
  if (turns > high) return plain;
  double blend = (turns - low) / (high - low);
  return (1 - blend) * stretched + blend * plain;
}

}  // namespace sextant
