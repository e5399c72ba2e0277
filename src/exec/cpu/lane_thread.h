// LaneThread: a thread that runs posted work in order, beside the thread that posts it. What it throws comes out of
// wait().
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace sextant {

class LaneThread {
 public:
  // At most `capacity` pieces of work wait at a time; posting allocates nothing.
  LaneThread(size_t capacity, std::function<void(void* work, int microbatch)> run);
  ~LaneThread();
  LaneThread(const LaneThread&) = delete;
  LaneThread& operator=(const LaneThread&) = delete;

  uint64_t post(void* work, int microbatch);  // the number to wait for
  void wait(uint64_t number);                 // until that piece, and all before it, are done
  void wait_all();

 private:
  struct Item {
    void* work = nullptr;
    int microbatch = 0;
  };
  void loop();

  std::function<void(void*, int)> run_;
  std::vector<Item> ring_;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t posted_ = 0, done_ = 0;
  bool stop_ = false;
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace sextant
