// EventHook: a command of the user's (log.on_event) that gets every event as a line of JSON on its standard input. It
// runs beside the run: one event after the other, each with a time limit, and what it prints is appended to a file. A
// step never waits for it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>

namespace sextant {

class EventHook {
 public:
  struct Limits {
    std::chrono::milliseconds each{10'000};  // then it is killed with all that it started
    size_t waiting = 100;                    // events in the queue; more are left out
  };
  // Empty: there is no command. `log`: what it prints, and what went wrong with it.
  EventHook(std::string command, std::filesystem::path log, const Limits& limits);
  EventHook(std::string command, std::filesystem::path log) : EventHook(std::move(command), std::move(log), Limits{}) {}
  ~EventHook();  // events in the queue are still handed over, each within its limit, `each` for all at most
  EventHook(const EventHook&) = delete;
  EventHook& operator=(const EventHook&) = delete;

  void post(std::string line);

 private:
  void work();
  void run(const std::string& line) const;
  void note(const std::string& line) const;

  std::string command_;
  std::filesystem::path log_;
  Limits limits_;
  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::deque<std::string> queue_;
  bool ending_ = false;
  std::chrono::steady_clock::time_point end_at_;  // while ending
  std::thread worker_;
};

}  // namespace sextant
