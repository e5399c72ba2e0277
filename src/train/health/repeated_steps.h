// RepeatedSteps: notices that many steps are repeated because more rows went to experts than were planned, and says
// what would avoid it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "train/metrics.h"

namespace sextant {

class RepeatedSteps {
 public:
  static constexpr int64_t kWindow = 20, kMany = 5;  // steps

  explicit RepeatedSteps(double capacity) : capacity_(capacity) {}

  // A warning where this step makes it many of the last ones; not again before as many others have passed.
  std::optional<std::string> note(const StepMetrics& m);

 private:
  struct Repeated {
    int64_t step, rounds;
  };
  double capacity_;
  std::vector<Repeated> recent_;
};

}  // namespace sextant
