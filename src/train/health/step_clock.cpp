#include "train/health/step_clock.h"

#include <algorithm>
#include <chrono>
#include <ctime>

namespace sextant {

StepClock::StepClock(const RankStatus* rank_status) : rank_status_(rank_status), since_(read()), paused_(since_) {}

StepClock::Reading StepClock::read() const {
  timespec processor{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &processor);
  return {.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(),
          .processor_s = static_cast<double>(processor.tv_sec) + 1e-9 * static_cast<double>(processor.tv_nsec),
          .message_ns = rank_status_ ? rank_status_->message_nanoseconds() : 0};
}

StepClock::Times StepClock::take() {
  Reading now = read();
  Times times{.message_s = 1e-9 * static_cast<double>(now.message_ns - since_.message_ns),
              .input_s = input_s_,
              .processor_s = now.processor_s - since_.processor_s};
  times.own_s = std::max(0.0, now.wall_s - since_.wall_s - times.message_s - times.input_s);
  since_ = now;
  input_s_ = 0;
  return times;
}

void StepClock::pause() {
  paused_ = read();
  is_paused_ = true;
}

void StepClock::resume() {
  if (!is_paused_) return;
  is_paused_ = false;
  Reading now = read();
  since_.wall_s += now.wall_s - paused_.wall_s;
  since_.processor_s += now.processor_s - paused_.processor_s;
  since_.message_ns += now.message_ns - paused_.message_ns;
}

}  // namespace sextant
