// NoiseScale: the gradient noise scale of McCandlish et al. 2018 (An Empirical Model of Large-Batch Training, appendix
// A): B = tr(Σ)/|G|², from the squared norms of the gradient of the whole batch and of parts of it. Below a batch of
// about B tokens, a larger one saves steps; above it, hardly any.
//
// With E|G_b|² = |G|² + tr(Σ)/b for a batch of b tokens, both |G|² and tr(Σ) follow from two sizes without bias. Each
// step's estimates are so noisy that the ratio of single ones means nothing: numerator and denominator are averaged,
// exponentially, and then divided.
#pragma once

#include <optional>

namespace sextant {

class NoiseScale {
 public:
  static constexpr double kDecay = 0.98;  // of the averages, at each step

  // `small`: mean squared norm of the gradients (each a mean over its own tokens) of parts of `small_tokens`; `full`:
  // that of the gradient of all `tokens`. Numbers that are not finite are left out.
  void note(double small, double small_tokens, double full, double tokens);
  // In tokens. Nothing before a step, and where the average of |G|² is not above 0: the batches are too small to tell.
  std::optional<double> tokens() const;

 private:
  double noise_ = 0, square_ = 0;  // averages of tr(Σ) and |G|², times `weight_`
  double weight_ = 0;
};

}  // namespace sextant
