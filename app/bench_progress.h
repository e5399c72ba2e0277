// The line on stderr that shows the progress of a benchmark. On a terminal each takes the place of the one before; in a
// file all of them stand.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "base/verbosity.h"

namespace sextant {

class ProgressLine {
 public:
  explicit ProgressLine(Verbosity verbosity)
      : quiet_(verbosity == Verbosity::quiet), on_terminal_(::isatty(STDERR_FILENO) != 0) {}
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void say(const std::string& line) {
    if (quiet_) return;
    fmt::print(stderr, "{}{}{}", on_terminal_ ? "\r\033[K" : "", line, on_terminal_ ? "" : "\n");
    std::fflush(stderr);
    shows_ = on_terminal_;
  }
  void clear() {
    if (shows_) fmt::print(stderr, "\r\033[K");
    shows_ = false;
  }

 private:
  bool quiet_, on_terminal_, shows_ = false;
};

}  // namespace sextant
