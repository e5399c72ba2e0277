// StepClock: where one rank's time goes, step by step: its own work, messages (waiting for other ranks included) and
// input, and what the kernel counts meanwhile. What lies between steps, such as evaluations and checkpoints, is left
// out.
#pragma once

#include <cstdint>
#include <optional>

#include "ckpt/disk.h"
#include "comm/rank_status.h"
#include "train/health/rank_times.h"

namespace sextant {

// Made and called on the rank's own thread.
class StepClock {
 public:
  // Null: a rank alone, which has no messages.
  explicit StepClock(const RankStatus* rank_status);

  RankTimes take();                                 // of the step that ends here
  const RankTimes& last() const { return last_; }   // what take() told
  std::optional<RankTimes> take_means();            // since the last call; nothing where no step was
  void leave_out(int64_t steps) { omit_ = steps; }  // that end next: they are slow on purpose, and in no mean

  void pause();   // what follows belongs to no step
  void resume();  // does nothing while it is not paused
  void add_input(double seconds) { input_s_ += seconds; }

 private:
  RankTimes read() const;  // counters, since whenever they began
  double crowding() const;

  const RankStatus* rank_status_;
  Descriptor schedule_, limits_, load_;  // what the kernel counts of the thread, of the control group, of the machine
  double cores_;
  double input_s_ = 0;  // since the start
  RankTimes since_, paused_, last_, sums_;
  int64_t steps_ = 0, omit_ = 0;
  bool is_paused_ = true;
};

}  // namespace sextant
