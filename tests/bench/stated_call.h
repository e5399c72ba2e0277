// Work that takes no time: every call says what it would have taken.
#pragma once

#include "exec/probe.h"

namespace sextant {

struct StatedCall final : TimedWork {
  explicit StatedCall(double s) : seconds(s) {}
  double run() override { return seconds; }
  double error() override { return 0; }
  double seconds;
};

}  // namespace sextant
