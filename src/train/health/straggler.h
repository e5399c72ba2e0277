// Which rank makes the others wait. All ranks of a synchronous run take the
// same time for a step; the one that is slow is the one that waits least.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/host_group.h"
#include "train/health/rank_times.h"

namespace sextant {

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

// Told once, when it has been so twice in a row, and again
// when it is another rank or reason, or after five looks without any. Among other programs that want the cores, some
// rank is always the one that gets least, for a while: there it must have been so twenty times.
class StragglerWatch {
 public:
  // Called by all ranks; what the leader finds, else nothing.
  std::optional<Straggler> look(const std::optional<RankTimes>& own, int program, HostGroup& group);
  // The straggler to report, judged from the times of all ranks.
  std::optional<Straggler> judge(const std::vector<RankTimes>& ranks, const std::vector<int>& programs);

 private:
  static bool is_near_median(const Straggler& slow, const RankTimes& times);

  std::optional<int> seen_;  // the rank that was slow at the last look
  int times_seen_ = 0;       // in a row
  int looks_without_ = 0;    // a slow rank, in a row
  std::optional<std::pair<int, SlowReason>> told_;
};

}  // namespace sextant
