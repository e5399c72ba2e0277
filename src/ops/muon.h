// Constants and formulas that the kernels of Muon's ops share on all devices.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

#include "base/error.h"
#include "describe/choice.h"
#include "ir/attrs.h"

namespace sextant {

// The quintic iteration x ← (a + b·xxᵀ + c·(xxᵀ)²)·x brings singular values from (0, 1] near 1 in few steps: of all
// such polynomials it has the steepest slope at 0 that keeps them within about 0.7 and 1.2.
inline constexpr double kNewtonSchulz[] = {3.4445, -4.7750, 2.0315};
// Below it a matrix counts as 0 and stays 0.
inline constexpr double kLeastNorm = 1e-7;

// Attr `adjust` and the key optimizer.adjust_lr: by how much the step of a matrix of r rows and c columns is longer
// than its learning rate says.
enum class MuonAdjustment : uint8_t { original, match_rms_adamw, spectral_unclamped };

struct MuonAdjustmentChoice : Choice<MuonAdjustment> {
  double (*factor)(double rows, double columns);
};

inline constexpr MuonAdjustmentChoice kMuonAdjustments[] = {
    {{MuonAdjustment::original, "original", "`lr` · sqrt(max(1, r/c))"},
     [](double r, double c) { return std::sqrt(std::max(1.0, r / c)); }},
    {{MuonAdjustment::match_rms_adamw, "match_rms_adamw",
      "`lr` · 0.2·sqrt(max(r, c)), steps as long as AdamW's, so that its learning rates can be kept"},
     [](double r, double c) { return 0.2 * std::sqrt(std::max(r, c)); }},
    {{MuonAdjustment::spectral_unclamped, "spectral_unclamped", "`lr` · sqrt(r/c)"},
     [](double r, double c) { return std::sqrt(r / c); }},
};
constexpr const auto& choices_of(MuonAdjustment) {
  return kMuonAdjustments;
}

inline double muon_factor(const Attrs& attrs, int64_t rows, int64_t columns) {
  std::string word = attrs.text_or("adjust", std::string(word_of(MuonAdjustment::original)));
  std::optional<MuonAdjustment> adjustment = value_of_word<MuonAdjustment>(word);
  BUG_IF(!adjustment, "unknown adjustment of Muon's learning rate: {}", word);
  return choice_of(*adjustment).factor(static_cast<double>(rows), static_cast<double>(columns));
}

}  // namespace sextant
