// RetryPolicy: whether a run that failed is started again, and after how long. Failures are counted since the last
// progress, which is a checkpoint of a later step than all before.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

#include "supervise/cause.h"

namespace sextant {

class RetryPolicy {
 public:
  using Duration = std::chrono::milliseconds;
  struct Limits {
    int64_t retries = 5;        // without progress
    Duration first_wait{1000};  // before the second; the first is at once
    Duration longest_wait{300'000};
  };
  // `newest_checkpoint`: its step when the supervisor starts; -1: there is none.
  RetryPolicy(const Limits& limits, int64_t newest_checkpoint) : limits_(limits), newest_(newest_checkpoint) {}

  struct Decision {
    bool retry = false;
    Duration wait{0};
    std::string why = {};  // of giving up
  };
  // `step`: the one the run was at.
  Decision after(const Cause& cause, int64_t step, int64_t newest_checkpoint);

  int64_t failures_without_progress() const { return failures_; }

 private:
  struct Limited {
    int64_t times = 0;
    int64_t step = -1;  // of the last time
  };
  Limits limits_;
  int64_t newest_;
  int64_t failures_ = 0;
  std::map<CauseKind, Limited> limited_;  // those with a limit of their own
};

}  // namespace sextant
