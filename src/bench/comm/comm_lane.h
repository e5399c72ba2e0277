// CommLane: a thread beside the caller's that stands ready, so that what is done on it starts at once. One thing at a
// time; what it throws comes out of wait().
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "base/threads.h"

namespace sextant {

class CommLane {
 public:
  CommLane() : thread_(start_thread("a rank's messages", [this] { work(); })) {}
  ~CommLane() {
    {
      std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  CommLane(const CommLane&) = delete;
  CommLane& operator=(const CommLane&) = delete;

  void start(std::function<void()> job) {
    {
      std::lock_guard lock(mutex_);
      job_ = std::move(job);
    }
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !job_; });
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return job_ || ends_; });
      if (!job_) return;
      std::function<void()> job = job_;
      lock.unlock();
      std::exception_ptr error;
      try {
        job();
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      error_ = error;
      job_ = nullptr;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> job_;  // empty: nothing to do
  std::exception_ptr error_;
  bool ends_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace sextant
