// RankStatus: what one rank is doing. The rank writes it by a few plain stores per op; any thread may read it at
// any time: a peer that has waited too long, the heartbeat of the run. What is read may be one op old, never broken.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>

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

  // Time that the rank spent in messages, waiting for others included: message_timer.h. Only the thread that does the
  // rank's steps adds to it.
  void add_message_time(int64_t nanoseconds) { message_ns_.fetch_add(nanoseconds, std::memory_order_relaxed); }
  int64_t message_nanoseconds() const { return message_ns_.load(std::memory_order_relaxed); }
  double message_s() const { return 1e-9 * static_cast<double>(message_nanoseconds()); }

  // The next sum over all ranks begins so much later on this one: a drill.
  void delay_next_sum(int64_t milliseconds) { sum_delay_ms_.store(milliseconds, std::memory_order_relaxed); }
  int64_t take_sum_delay() { return sum_delay_ms_.exchange(0, std::memory_order_relaxed); }

  void move_on() { moves_.fetch_add(1, std::memory_order_relaxed); }  // progress within long work, such as a save

  StatusSnapshot seen() const;
  // Another number whenever the rank is somewhere else: one that stays the same belongs to a rank that stands still.
  uint64_t progress() const;

 private:
  std::atomic<int64_t> step_{0};
  std::atomic<uint64_t> action_{0};  // region, chunk and microbatch in one word: read as they were written
  std::atomic<const std::string*> place_{nullptr}, beside_{nullptr};
  std::atomic<int> waiting_for_{-1};
  std::atomic<int64_t> waiting_since_ms_{0}, sequence_{0};
  std::atomic<uint64_t> moves_{0};
  std::atomic<int64_t> message_ns_{0}, sum_delay_ms_{0};
  std::mutex mutex_;  // of places_
  std::deque<std::string> places_;
};

}  // namespace sextant
