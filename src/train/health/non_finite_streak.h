// How many steps in a row had a loss or gradient norm that was not finite. One that is finite ends the row. Gradients
// that overflowed under a loss scale that can still get smaller say nothing of the run.
#pragma once

#include <cmath>
#include <cstdint>

#include "train/metrics.h"

namespace sextant {

class NonFiniteStreak {
 public:
  explicit NonFiniteStreak(int64_t limit, double least_loss_scale = 0)
      : limit_(limit), least_loss_scale_(least_loss_scale) {}

  void note(const StepMetrics& metrics) {
    std::optional<double> scale = metrics.find(number::loss_scale);
    bool scale_too_large = scale && *scale > least_loss_scale_;
    if (metrics.is_update_skipped() && std::isfinite(metrics[number::loss]) && scale_too_large) return;
    steps_ = metrics.is_finite() ? 0 : steps_ + 1;
  }
  void reset() { steps_ = 0; }
  int64_t steps() const { return steps_; }
  bool is_over_limit() const { return steps_ >= limit_; }

 private:
  int64_t limit_;
  double least_loss_scale_;
  int64_t steps_ = 0;
};

}  // namespace sextant
