// MessageTimer: counts the time until its end as spent in messages (RankStatus::message_nanoseconds).
#pragma once

#include <chrono>

#include "comm/rank_status.h"

namespace sextant {

class MessageTimer {
 public:
  // Null: nothing is counted.
  explicit MessageTimer(RankStatus* rank_status) : rank_status_(rank_status) {
    if (rank_status_) start_ = Clock::now();
  }
  ~MessageTimer() {
    if (rank_status_)
      rank_status_->add_message_time(
          std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start_).count());
  }
  MessageTimer(const MessageTimer&) = delete;
  MessageTimer& operator=(const MessageTimer&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  RankStatus* rank_status_;
  Clock::time_point start_;
};

}  // namespace sextant
