// StallWatch: ends the process when this rank stands still for longer than its limit, and keeps the limit: what the run
// has learned from its steps holds for waits on other ranks too. A rank that waits for another ends by the transport's
// time-out, which comes first; this is for a rank that hangs itself (a device, a file system), and for one that nobody
// waits for.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "comm/transport.h"
#include "exec/executor.h"
#include "train/health/time_limits.h"

namespace sextant {

class StallWatch {
 public:
  struct Parts {
    const RankStatus& rank_status;
    Transport* transport;  // null for the only rank
    TimeLimits limits;
    // Called on a thread of its own with what happened; does not return.
    std::function<void(const std::string& why)> end;
  };
  explicit StallWatch(Parts parts);  // watches from the first step on: how long loading takes is not known
  ~StallWatch();
  StallWatch(const StallWatch&) = delete;
  StallWatch& operator=(const StallWatch&) = delete;

  // All ranks have met just before: none of them is behind in other work.
  void begin_step();
  // An evaluation, a save: what follows may take longer than any step, up to the next begin_step.
  void begin_other_work();

 private:
  using Clock = std::chrono::steady_clock;
  using Duration = TimeLimits::Duration;

  void set_limit(Duration own, Duration of_waits);
  void keep_watching();

  Parts parts_;
  bool in_step_ = false;
  Clock::time_point step_began_;
  std::atomic<int64_t> limit_ms_{0};  // 0: not watching
  std::mutex mutex_;
  std::condition_variable ended_;
  bool over_ = false;
  std::thread watcher_;
};

// The values of a save, told to the watch as they are read: a slow disk is not one that hangs.
class MovingView final : public StateView {
 public:
  MovingView(const StateView& values, RankStatus& rank_status) : values_(values), rank_status_(rank_status) {}

  const Program& program() const override { return values_.program(); }
  int rank() const override { return values_.rank(); }
  void read(const Value& value, std::span<std::byte> destination, int64_t offset) const override {
    rank_status_.move_on();
    values_.read(value, destination, offset);
  }
  void verify_checksums() const override { values_.verify_checksums(); }

 private:
  const StateView& values_;
  RankStatus& rank_status_;
};

}  // namespace sextant
