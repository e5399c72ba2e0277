// How much the loss of a run depends on its seed (train.seed: initial weights, order of the data). One run cannot tell:
// it is measured where runs differ in nothing else, and assumed otherwise.
#pragma once

#include <cstddef>
#include <vector>

#include "watch/watched_run.h"

namespace sextant {

struct SeedNoise {
  // Measured with ten seeds of a small model (bench/results/compare_seeds.txt); large runs depend less on their seed.
  static constexpr double kAssumed = 0.02;

  double share = kAssumed;  // standard deviation over seeds, as a share of the loss
  size_t runs = 0;          // that it was measured with; 0: it is assumed
};

// Of the runs that differ from others among them in train.seed alone: the spread of their losses at equal tokens beyond
// the noise of the curves. Few such runs count beside what is assumed.
SeedNoise seed_noise_of(const std::vector<const WatchedRun*>& runs, size_t window);

}  // namespace sextant
