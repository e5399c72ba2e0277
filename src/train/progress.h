// Progress of a run for the user: one line that renews itself on a terminal, a plain line every `log_every` steps
// elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "train/metrics.h"

namespace sextant {

enum class Lines : uint8_t {
  as_found,  // one that renews itself if standard output is a terminal
  plain,     // under a launcher, which passes a terminal off as the program's own and writes to a file
};

class Progress {
 public:
  Progress(int64_t first_step, int64_t last_step, int64_t log_every, Lines lines = Lines::as_found);

  void say(std::string_view line);        // a line of its own
  void step(const StepMetrics& metrics);  // after every step

 private:
  void clear_line();
  double seconds_left(int64_t step) const;

  using Clock = std::chrono::steady_clock;
  bool terminal_;
  bool line_open_ = false;
  int64_t first_step_;
  int64_t last_step_;
  int64_t log_every_;
  Clock::time_point start_;
};

}  // namespace sextant
