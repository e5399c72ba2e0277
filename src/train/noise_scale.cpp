#include "train/noise_scale.h"

#include <cmath>

namespace sextant {

void NoiseScale::note(double small, double small_tokens, double full, double tokens) {
  if (!std::isfinite(small) || !std::isfinite(full)) return;
  double square = (tokens * full - small_tokens * small) / (tokens - small_tokens);
  double noise = (small - full) / (1 / small_tokens - 1 / tokens);
  noise_ = kDecay * noise_ + (1 - kDecay) * noise;
  square_ = kDecay * square_ + (1 - kDecay) * square;
  weight_ = kDecay * weight_ + (1 - kDecay);
}

std::optional<double> NoiseScale::tokens() const {
  if (weight_ == 0 || !(square_ > 0)) return std::nullopt;
  return noise_ / square_;
}

}  // namespace sextant
