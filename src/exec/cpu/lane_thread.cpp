#include "exec/cpu/lane_thread.h"

#include "base/error.h"
#include "base/threads.h"

namespace sextant {

LaneThread::LaneThread(size_t capacity, std::function<void(void*, int)> run)
    : run_(std::move(run)), ring_(capacity + 1), thread_(start_thread("a rank's messages", [this] { loop(); })) {}

LaneThread::~LaneThread() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

uint64_t LaneThread::post(void* work, int microbatch) {
  uint64_t number;
  {
    std::lock_guard lock(mutex_);
    BUG_IF(posted_ - done_ >= ring_.size(), "more work on a lane than it has room for");
    ring_[posted_ % ring_.size()] = {work, microbatch};
    number = ++posted_;
  }
  changed_.notify_all();
  return number;
}

void LaneThread::wait(uint64_t number) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return done_ >= number || error_; });
  if (error_) std::rethrow_exception(error_);
}

void LaneThread::wait_all() {
  uint64_t last;
  {
    std::lock_guard lock(mutex_);
    last = posted_;
  }
  wait(last);
}

void LaneThread::loop() {
  for (;;) {
    Item item;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stop_ || (posted_ > done_ && !error_); });
      if (stop_) return;
      item = ring_[done_ % ring_.size()];
    }
    std::exception_ptr error;
    try {
      run_(item.work, item.microbatch);
    } catch (...) {
      error = std::current_exception();
    }
    {
      std::lock_guard lock(mutex_);
      if (error)
        error_ = error;
      else
        ++done_;
    }
    changed_.notify_all();
  }
}

}  // namespace sextant
