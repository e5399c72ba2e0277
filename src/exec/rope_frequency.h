// The angle by which RoPE turns pair j of a head from one position to the next, on any device.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "ir/attrs.h"

namespace sextant {

// As the contract of ops/rope.cpp says.
inline double rope_frequency(const Attrs& attrs, int64_t j, int64_t dim) {
  double plain = std::pow(attrs.real("theta"), -2.0 * static_cast<double>(j) / static_cast<double>(dim));
  if (attrs.has("frequency_divisors")) return plain / attrs.reals("frequency_divisors")[static_cast<size_t>(j)];
  if (!attrs.has("scale_factor")) return plain;
  double stretched = plain / attrs.real("scale_factor");
  if (attrs.has("ramp_begin")) {
    double begin = attrs.real("ramp_begin"), end = attrs.real("ramp_end");
    double ramp = std::clamp((static_cast<double>(j) - begin) / (end - begin), 0.0, 1.0);
    return ramp * stretched + (1 - ramp) * plain;
  }
  if (!attrs.has("low_freq_factor")) return stretched;
  double low = attrs.real("low_freq_factor"), high = attrs.real("high_freq_factor");
  double turns = attrs.real("original_max_positions") * plain / (2 * std::numbers::pi);  // over the first context
  if (turns < low) return stretched;
  if (turns > high || low == high) return plain;
  double blend = (turns - low) / (high - low);
  return (1 - blend) * stretched + blend * plain;
}

}  // namespace sextant
