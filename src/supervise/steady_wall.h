// SteadyWall: the time by a wall clock that nobody sets: the real one when this was made, moved on by the steady clock.
// Files have their times by the real one, before or after it was set.
#pragma once

#include <chrono>

#include "supervise/attempt.h"

namespace sextant {

class SteadyWall {
 public:
  using Steady = std::chrono::steady_clock;

  WallTime now() const { return at(Steady::now()); }
  WallTime at(Steady::time_point steady) const {
    return wall_ + std::chrono::duration_cast<WallTime::duration>(steady - steady_);
  }
  // By how much the real clock is ahead of this one at the moment.
  WallTime::duration set_by() const { return std::chrono::system_clock::now() - now(); }

 private:
  WallTime wall_ = std::chrono::system_clock::now();
  Steady::time_point steady_ = Steady::now();
};

// When a file was written whose time is `told`, by a clock that nobody sets: by the real one, which was ahead by `set`
// at that time or not yet; between `first` and `last`.
inline WallTime time_within(WallTime told, WallTime::duration set, WallTime first, WallTime last) {
  for (WallTime time : {told, told - set})
    if (time >= first && time <= last) return time;
  return told < first ? first : last;
}

}  // namespace sextant
