// Constants and formulas that the kernels of Muon's ops share on all devices.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "ir/attrs.h"

namespace sextant {

// The quintic iteration x ← (a + b·xxᵀ + c·(xxᵀ)²)·x brings singular values from (0, 1] near 1 in few steps: of all
// such polynomials it has the steepest slope at 0 that keeps them within about 0.7 and 1.2.
inline constexpr double kNewtonSchulz[] = {3.4445, -4.7750, 2.0315};
// Below it a matrix counts as 0 and stays 0.
inline constexpr double kLeastNorm = 1e-7;

// The words of attr `adjust` and of the key optimizer.adjust_lr.
inline constexpr std::string_view kMuonAdjustments = "original|match_rms_adamw|spectral_unclamped";

// By how much the step of a matrix of this shape is longer than its learning rate says.
inline double muon_factor(const Attrs& attrs, int64_t rows, int64_t columns) {
  double r = static_cast<double>(rows), c = static_cast<double>(columns);
  std::string adjust = attrs.text_or("adjust", "original");
  if (adjust == "original") return std::sqrt(std::max(1.0, r / c));
  if (adjust == "match_rms_adamw") return 0.2 * std::sqrt(std::max(r, c));
  BUG_IF(adjust != "spectral_unclamped", "unknown adjustment of Muon's learning rate: {}", adjust);
  return std::sqrt(r / c);
}

}  // namespace sextant
