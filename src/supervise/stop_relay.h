// StopRelay: asks a child to save and stop, and asks again until it says that it has, or has ended. A signal that
// comes while mpirun starts its ranks reaches none of them.
#pragma once

#include <signal.h>

#include <chrono>

#include "supervise/child_process.h"

namespace sextant {

class StopRelay {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kAgainAfter{500};

  explicit StopRelay(const ChildProcess& child) : child_(child) {}

  bool has_asked() const { return asked_; }
  // Sends SIGUSR1 where it is due; a run takes any number of them as one request.
  void ask(Clock::time_point now) {
    if (answered_ || (asked_ && now - last_ < kAgainAfter)) return;
    child_.send(SIGUSR1);
    asked_ = true;
    last_ = now;
  }
  // The run has saved and is about to leave: another signal would meet a process that no longer handles it.
  void answered() { answered_ = true; }

 private:
  const ChildProcess& child_;
  bool asked_ = false, answered_ = false;
  Clock::time_point last_;
};

}  // namespace sextant
