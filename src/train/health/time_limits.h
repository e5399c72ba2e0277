// How long a rank may stand still. train.timeout_s sets how long others wait for it; where it does not, the run learns
// from its own steps until when it must have ended.
#pragma once

#include <chrono>

#include "config/run_config.h"

namespace sextant {

class TimeLimits {
 public:
  using Duration = std::chrono::milliseconds;

  static constexpr Duration kLongest{600'000};
  // A network file system that pauses, or a host that swaps, is not lost yet.
  static constexpr Duration kShortest{60'000};
  static constexpr int kSlowestTimes = 20;  // so many times the slowest step so far
  static constexpr int kStepsToLearn = 20;
  static constexpr Duration kMostForEnd{5000};  // from the end of a wait until every process has ended

  explicit TimeLimits(const RunConfig& run);

  void step_took(Duration time);  // a step with nothing but a step in it

  // Until when a run whose rank stands still has ended: in a step, and in work that is no step (loading, evaluating,
  // saving).
  Duration in_step() const;
  Duration in_other_work() const { return fixed_ ? configured_ : kLongest; }

  // The part of a limit that ranks wait for each other: the rest is for telling the others and ending those that do not
  // listen.
  static Duration wait_of(Duration limit) { return limit - end_of(limit); }
  static Duration end_of(Duration limit);

 private:
  Duration configured_;
  bool fixed_;
  Duration slowest_{0};
  int steps_ = 0;
};

}  // namespace sextant
