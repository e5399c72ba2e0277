#include "train/health/step_clock.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <ctime>
#include <span>
#include <string_view>

namespace sextant {

namespace {

double used_s(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// A file that the kernel makes anew at every look; what is in it, without allocating.
std::string_view look_into(const Descriptor& file, std::span<char> room) {
  ssize_t size = file.is_open() ? ::pread(file.get(), room.data(), room.size(), 0) : 0;
  return {room.data(), static_cast<size_t>(std::max<ssize_t>(0, size))};
}

// The number that stands behind `key`; 0 where there is none.
double number_behind(std::string_view text, std::string_view key) {
  size_t at = text.find(key);
  int64_t number = 0;
  if (at != text.npos) std::from_chars(text.data() + at + key.size(), text.data() + text.size(), number);
  return static_cast<double>(number);
}

}  // namespace

StepClock::StepClock(const RankStatus* rank_status)
    : rank_status_(rank_status),
      schedule_(::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)),
      limits_(::open("/sys/fs/cgroup/cpu.stat", O_RDONLY | O_CLOEXEC)),
      load_(::open("/proc/loadavg", O_RDONLY | O_CLOEXEC)),
      cores_(static_cast<double>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)))),
      since_(read()),
      paused_(since_) {}

RankTimes StepClock::read() const {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  std::array<char, 1024> room;
  double run_delay_ns = number_behind(look_into(schedule_, room), " ");  // "on a core, without one, times"
  double throttled_us = number_behind(look_into(limits_, room), "throttled_usec ");
  auto wall = std::chrono::steady_clock::now().time_since_epoch();
  return {.step = std::chrono::duration<double>(wall).count(),
          .waited = rank_status_ ? rank_status_->message_s() : 0,
          .input = input_s_,
          .cpu = used_s(CLOCK_THREAD_CPUTIME_ID),
          .processor = used_s(CLOCK_PROCESS_CPUTIME_ID),
          .run_delay = run_delay_ns * 1e-9,
          .throttled = throttled_us * 1e-6,
          .major_faults = static_cast<double>(usage.ru_majflt),
          .blocks_read = static_cast<double>(usage.ru_inblock)};
}

// "0.20 0.18 0.12 3/80 11206": the fourth has the threads that run or could, and all.
double StepClock::crowding() const {
  std::array<char, 128> room;
  std::string_view text = look_into(load_, room);
  size_t slash = text.find('/'), space = text.substr(0, slash).rfind(' ');
  return slash == text.npos || space == text.npos ? 0 : number_behind(text.substr(space), " ") / cores_;
}

RankTimes StepClock::take() {
  RankTimes now = read();
  last_ = now;
  last_ -= since_;
  last_.crowding = crowding();
  last_.occupied = last_.step > 0 ? last_.processor / last_.step / cores_ : 0;
  since_ = now;
  if (omit_ > 0) {
    --omit_;
  } else {
    sums_ += last_;
    ++steps_;
  }
  return last_;
}

std::optional<RankTimes> StepClock::take_means() {
  if (steps_ == 0) return std::nullopt;
  RankTimes means = sums_;
  means /= static_cast<double>(steps_);
  sums_ = {};
  steps_ = 0;
  return means;
}

void StepClock::pause() {
  paused_ = read();
  is_paused_ = true;
}

void StepClock::resume() {
  if (!is_paused_) return;
  is_paused_ = false;
  since_ += read();
  since_ -= paused_;
}

}  // namespace sextant
