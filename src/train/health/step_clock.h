// StepClock: where one rank's time goes, step by step: its own work, messages (waiting for other ranks included) and
// input. What lies between steps, such as evaluations and checkpoints, is left out.
#pragma once

#include <cstdint>

#include "comm/rank_status.h"

namespace sextant {

class StepClock {
 public:
  // Null: a rank alone, which has no messages.
  explicit StepClock(const RankStatus* rank_status);

  struct Times {
    double own_s = 0;        // neither of the two below
    double message_s = 0;    // where messages are made by the host
    double input_s = 0;      // reading samples and handing them over
    double processor_s = 0;  // of the whole process, all threads
  };
  // Since the last call, or the start.
  Times take();

  void pause();   // what follows belongs to no step
  void resume();  // does nothing while it is not paused
  void add_input(double seconds) {
    input_s_ += seconds;
    all_input_s_ += seconds;
  }
  double all_input_s() const { return all_input_s_; }  // since the start

 private:
  struct Reading {
    double wall_s = 0, processor_s = 0;
    int64_t message_ns = 0;
  };
  Reading read() const;

  const RankStatus* rank_status_;
  Reading since_, paused_;
  bool is_paused_ = true;
  double input_s_ = 0, all_input_s_ = 0;
};

}  // namespace sextant
