#include "train/health/time_limits.h"

#include <algorithm>
#include <cmath>

namespace sextant {

namespace {

TimeLimits::Duration from_seconds(double seconds) {
  constexpr double kMost = 1e9;  // far beyond any run, and far within what a duration counts
  return TimeLimits::Duration(static_cast<int64_t>(std::ceil(std::min(seconds, kMost) * 1000)));
}

}  // namespace

TimeLimits::TimeLimits(const RunConfig& run) : fixed_(run.train.timeout_s > 0) {
  Duration wait = from_seconds(run.train.timeout_s);
  configured_ = wait + std::min(wait, kMostForEnd);  // of which wait_of() is what was set
}

void TimeLimits::step_took(Duration time) {
  slowest_ = std::max(slowest_, time);
  ++steps_;
}

TimeLimits::Duration TimeLimits::in_step() const {
  if (fixed_) return configured_;
  if (steps_ < kStepsToLearn || slowest_ > kLongest / kSlowestTimes) return kLongest;
  return std::max(kShortest, kSlowestTimes * slowest_);
}

TimeLimits::Duration TimeLimits::end_of(Duration limit) {
  return std::min<Duration>(limit / 2, kMostForEnd);
}

}  // namespace sextant
