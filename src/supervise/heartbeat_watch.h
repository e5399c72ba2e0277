// HeartbeatWatch: whether the ranks of a run still write their heartbeats. A rank that hangs while its process lives
// ends by itself (train.timeout_s); this is for processes that are stopped, hosts that are gone, and starts that never
// come to their first step. Only changes are looked at, so clocks of other hosts do not matter.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace sextant {

class HeartbeatWatch {
 public:
  using Clock = std::chrono::steady_clock;
  struct Limits {
    std::chrono::milliseconds stale{60'000};     // between two beats of a rank
    std::chrono::milliseconds stopped{10'000};   // of a rank on this host that a signal has stopped
    std::chrono::milliseconds start{3'600'000};  // until the first beat
    std::chrono::milliseconds leaving{120'000};  // from the last beat of all to the end of the processes
    std::chrono::milliseconds failing{120'000};  // the same, where a rank has failed and a launcher started them
  };
  HeartbeatWatch(std::filesystem::path out, const Limits& limits, Clock::time_point start);

  // The run has begun, so that each of so many ranks has a heartbeat, whether its file has been seen or not: somebody
  // may have removed it.
  void expect(int64_t ranks, Clock::time_point now);

  // The hang at this moment, as text; nullopt when nothing hangs.
  std::optional<std::string> look(Clock::time_point now);

  // When last looked: every rank had ended, one of them by a failure, and the launcher should have ended too. It does
  // not where it cannot reach a host that took part.
  bool launcher_is_left(Clock::time_point now) const;

 private:
  struct Seen {
    std::filesystem::file_time_type written;
    Clock::time_point changed;
  };
  std::filesystem::path out_;
  Limits limits_;
  Clock::time_point start_;
  std::map<std::string, Seen> files_;
  bool has_begun_ = false;
};

}  // namespace sextant
