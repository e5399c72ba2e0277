// Error texts that all transports share: for time-outs, size mismatches, and runs that ended.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "comm/rank_status.h"

namespace sextant {

enum class Direction : uint8_t { send, receive };

struct MessageFacts {
  Direction direction = Direction::send;
  int rank = 0;  // whose call it is
  int peer = 0;
  int tag = 0;
  size_t bytes = 0;
};

// Where the waiting rank stands and, rank after rank, whom each waits for: the last of them is the one to look at.
// Without a status_lookup nothing is said of others.
std::string timeout_reason(const MessageFacts& message, std::chrono::milliseconds waited,
                           const StatusSnapshot& here = {}, const StatusLookup& status_lookup = {});

// `met` is the size of the other side's call.
std::string mismatch_reason(const MessageFacts& message, size_t met);

std::string ended_text(const std::string& reason);

// How long a wait has lasted, measured by looking at it often. Time in which this process did not run counts little: a
// job that a scheduler or Ctrl-Z has suspended for an hour has not waited for an hour.
class WaitClock {
 public:
  std::chrono::steady_clock::duration look();  // so far

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::duration waited_{0};
};

// For tests and benchmarks: SEXTANT_MESSAGE_DELAY_MS says how long a message travels. A receive is complete that long
// after its send was posted at the earliest; the sender does not wait for it. Zero when unset. UserError when it is no
// number.
std::chrono::milliseconds message_delay_from_environment();

}  // namespace sextant
