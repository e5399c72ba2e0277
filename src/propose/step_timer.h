// How long a training step of a config takes here: measured where that is quick, else estimated from the rate of the
// model that was measured last.
#pragma once

#include <functional>

#include "config/run_config.h"

namespace sextant {

class StepTimer {
 public:
  // `measure` trains some steps and returns the seconds of one.
  explicit StepTimer(std::function<double(const RunConfig& run)> measure) : measure_(std::move(measure)) {}

  double seconds(const RunConfig& run, double parameters);

 private:
  std::function<double(const RunConfig& run)> measure_;
  double flops_per_s_ = 0;
};

}  // namespace sextant
