// How many steps in a row had a loss or gradient norm that was not finite. One that is finite ends the row.
#pragma once

#include <cstdint>

#include "train/metrics.h"

namespace sextant {

class NonFiniteStreak {
 public:
  explicit NonFiniteStreak(int64_t limit) : limit_(limit) {}

  void note(const StepMetrics& metrics) { steps_ = metrics.is_finite() ? 0 : steps_ + 1; }
  int64_t steps() const { return steps_; }
  bool is_over_limit() const { return steps_ >= limit_; }

 private:
  int64_t limit_;
  int64_t steps_ = 0;
};

}  // namespace sextant
