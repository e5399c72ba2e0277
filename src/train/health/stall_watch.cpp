#include "train/health/stall_watch.h"

#include <algorithm>

#include "comm/message.h"

namespace sextant {

namespace {

constexpr std::chrono::milliseconds kGlance{250};

}  // namespace

StallWatch::StallWatch(Parts parts) : parts_(std::move(parts)) {
  watcher_ = std::thread([this] { keep_watching(); });
}

StallWatch::~StallWatch() {
  {
    std::lock_guard lock(mutex_);
    over_ = true;
  }
  ended_.notify_all();
  watcher_.join();
}

void StallWatch::set_limit(Duration own, Duration of_waits) {
  limit_ms_.store(own.count(), std::memory_order_relaxed);
  if (parts_.transport) parts_.transport->set_timeout(TimeLimits::wait_of(of_waits));
}

void StallWatch::begin_step() {
  Clock::time_point now = Clock::now();
  if (in_step_) parts_.limits.step_took(std::chrono::duration_cast<Duration>(now - step_began_));
  step_began_ = now;
  in_step_ = true;
  // Those who wait for this rank are the first to end; where there are none, nobody does so earlier.
  Duration limit = parts_.limits.in_step();
  set_limit(parts_.transport ? limit : TimeLimits::wait_of(limit), limit);
}

void StallWatch::begin_other_work() {
  in_step_ = false;
  Duration limit = parts_.limits.in_other_work();
  // Between two tensors that are read a save may flush for long, and only this rank knows that it is at work.
  set_limit(std::max(limit, TimeLimits::kLongest), limit);
}

void StallWatch::keep_watching() {
  uint64_t last = parts_.rank_status.progress();
  WaitClock still;
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, kGlance, [this] { return over_; })) {
    std::chrono::milliseconds limit(limit_ms_.load(std::memory_order_relaxed));
    uint64_t now = parts_.rank_status.progress();
    if (now != last || limit.count() == 0) still = WaitClock();
    last = now;
    if (limit.count() == 0 || still.look() < limit) continue;
    std::string where = parts_.rank_status.seen().text();
    parts_.end(fmt::format("stood still for {} s{}{}", std::chrono::duration<double>(limit).count(),
                           where.empty() ? "" : " ", where));
    return;
  }
}

}  // namespace sextant
