// Where the time of a rank's steps goes, and which rank makes the others wait. All ranks of a synchronous run take the
// same time for a step; the one that is slow is the one that waits least.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ckpt/disk.h"
#include "comm/host_group.h"

namespace sextant {

// Means over some steps, in seconds of a step. Of the thread that computes.
struct RankTimes {
  double step = 0;
  double waited = 0;                         // in messages, for other ranks above all
  double input = 0;                          // reading data
  double cpu = 0;                            // on a core
  double run_delay = 0;                      // ready, but without a core
  double throttled = 0;                      // the process's, by the CPU limit of its cgroup
  double major_faults = 0, blocks_read = 0;  // how many

  double own() const { return step - waited; }
};

enum class SlowReason : uint8_t { input, no_core, throttled, page_faults, disk, compute, asleep };
std::string_view name_of(SlowReason reason);  // "slow input"

struct Straggler {
  int rank = -1;
  double own = 0, others = 0;  // seconds of a step: its own work, and the median of those that do the same
  SlowReason reason = SlowReason::compute;
  std::string text;  // a sentence
};

// `groups`: ranks with the same number run the same Program, and are compared. Nothing where none stands out: half as
// much again as the others' work, a tenth of the step, and two milliseconds.
std::optional<Straggler> find_straggler(const std::vector<RankTimes>& ranks, const std::vector<int>& groups);

// The steps of one rank, as they go.
class RankTimesMeter {
 public:
  RankTimesMeter();                                   // on the rank's own thread, as all calls
  void begin_step(double message_s, double input_s);  // the step before ends here
  void pause() { running_ = false; }                  // what follows is no step
  std::optional<RankTimes> take_means();              // since the last call; nothing where no step was
  RankTimes last() const { return last_; }            // of the last step

 private:
  Descriptor schedule_, limits_;  // what the kernel counts of the thread, and of the control group
  RankTimes now_{}, last_{}, sums_{};
  int64_t steps_ = 0;
  bool running_ = false;
};

// Called by all ranks; what the leader finds, else nothing. Told once, when it has been so twice in a row, and again
// when it is another rank or reason.
class StragglerWatch {
 public:
  std::optional<Straggler> look(const std::optional<RankTimes>& own, int program, HostGroup& group);

 private:
  std::optional<Straggler> seen_;
  std::optional<std::pair<int, SlowReason>> told_;
};

}  // namespace sextant
