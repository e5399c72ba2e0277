// RankStatus: what one rank is doing. The rank writes it by a few plain stores per op; any thread may read it at
// any time: a peer that has waited too long, the heartbeat of the run. What is read may be one op old, never broken.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace sextant {

struct StatusSnapshot {
  int64_t step = 0;      // 0: before the first
  std::string action;    // "F 0 3": region, chunk, microbatch; or "Update"; empty outside of them
  std::string place;     // "layers.1.attn.out.moved (all_reduce over tp)"; empty before the first op of a step
  std::string beside;    // what another lane does meanwhile; empty: nothing
  int waiting_for = -1;  // the rank whose message it waits for; -1: none
  // Ops begun since the process started. Ranks that run the same Program have the same number at the same op.
  int64_t sequence = 0;
  int64_t waiting_since_ms = 0;  // of the wall clock; 0: it does not wait

  std::string text()
      const;  // "in step 7, F 0 3, at layers.1.attn.out.moved (all_reduce over tp)"; empty: nothing known
};

// How to learn where another rank was last seen.
using StatusLookup = std::function<StatusSnapshot(int rank)>;

class RankStatus {
 public:
  // A place to arrive at. It stays as long as this object does, so that readers never meet one that is gone.
  const std::string* keep(std::string place);

  void begin_step(int64_t step);
  void begin_action(char region, int chunk, int microbatch);  // F, B, W or U
  void arrive(const std::string* place) {
    place_.store(place, std::memory_order_release);
    sequence_.store(sequence_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);  // by this thread only
  }
  void arrive_beside(const std::string* place) { beside_.store(place, std::memory_order_release); }  // on another lane
  void leave_action() { action_.store(0, std::memory_order_relaxed); }
  void wait_for(int rank);
  void waited_for(int rank) { waiting_for_.compare_exchange_strong(rank, -1, std::memory_order_relaxed); }

  // The thread that computes. How long it has waited for other ranks, in all, is counted; waits of other lanes are not.
  void work_on_this_thread() { worker_.store(std::this_thread::get_id(), std::memory_order_relaxed); }
  bool works_on_this_thread() const { return worker_.load(std::memory_order_relaxed) == std::this_thread::get_id(); }
  void add_waited(std::chrono::nanoseconds time) { waited_ns_.fetch_add(time.count(), std::memory_order_relaxed); }
  double waited_s() const { return static_cast<double>(waited_ns_.load(std::memory_order_relaxed)) * 1e-9; }

  void move_on() { moves_.fetch_add(1, std::memory_order_relaxed); }  // progress within long work, such as a save

  StatusSnapshot seen() const;
  // Another number whenever the rank is somewhere else: one that stays the same belongs to a rank that stands still.
  uint64_t progress() const;

 private:
  std::atomic<int64_t> step_{0};
  std::atomic<uint64_t> action_{0};  // region, chunk and microbatch in one word: read as they were written
  std::atomic<const std::string*> place_{nullptr}, beside_{nullptr};
  std::atomic<int> waiting_for_{-1};
  std::atomic<int64_t> waiting_since_ms_{0}, waited_ns_{0}, sequence_{0};
  std::atomic<std::thread::id> worker_{};
  std::atomic<uint64_t> moves_{0};
  std::mutex mutex_;  // of places_
  std::deque<std::string> places_;
};

// Stands where a thread waits for other ranks.
class CountedWait {
 public:
  explicit CountedWait(RankStatus& status) : status_(status) {
    if (status.works_on_this_thread()) begin_ = std::chrono::steady_clock::now();
  }
  ~CountedWait() {
    if (begin_ != std::chrono::steady_clock::time_point{})
      status_.add_waited(std::chrono::steady_clock::now() - begin_);
  }
  CountedWait(const CountedWait&) = delete;
  CountedWait& operator=(const CountedWait&) = delete;

 private:
  RankStatus& status_;
  std::chrono::steady_clock::time_point begin_{};
};

}  // namespace sextant
