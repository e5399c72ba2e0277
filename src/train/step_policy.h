// StepPolicy: how a step is to be made.
#pragma once

#include <limits>

namespace sextant {

struct StepPolicy {
  double rate_factor = 1;                                     // of the learning rate
  float norm_limit = std::numeric_limits<float>::infinity();  // no update where the gradient norm is above it
};

}  // namespace sextant
