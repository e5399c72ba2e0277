// How good a run of a sweep is so far, from its metrics.jsonl.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "watch/loss_basis.h"

namespace sextant {

struct RunScore {
  int64_t steps = 0;                      // done
  std::optional<double> loss;             // mean of the last tenth of the steps, at least ten where there are
  std::optional<double> validation_loss;  // the last one
  std::optional<double> bits_per_byte;    // with it
  std::optional<double> tokens_per_s;     // median of the same steps
  bool diverged = false;                  // the last loss is not finite

  const std::optional<double>& in(LossMeasure measure) const;
  // The loss that runs are ranked by; infinite where there is none.
  double value(LossMeasure measure) const;
};

RunScore score_of(const std::filesystem::path& run);

}  // namespace sextant
