// DriftWatch: notices that steps have become slower than the run's own baseline by more than their noise, since when,
// and what most likely slows them: what took longer, on which ranks.
//
// Steps are taken in blocks, of which the medians count: a few slow steps move nothing. The logarithms of the medians
// are summed up above the baseline (a one-sided CUSUM); its noise is the spread of the blocks of the baseline itself.
//
// Other programs that want the same cores slow a run as well, for as long as they last. How many threads of the machine
// could run, for each of its cores, and how long ranks were ready without a core tell those times: what they explain is
// a drift only when it lasts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "train/metrics.h"

namespace sextant {

// The likely cause, by what was measured.
enum class DriftCause : uint8_t {
#define DRIFT_CAUSE(name, text) name,
#include "train/health/drift_causes.def"
#undef DRIFT_CAUSE
};
std::string_view name_of(DriftCause cause);
std::string_view text_of(DriftCause cause);

// One step, as all ranks together measured it.
struct TimedStep {
  int64_t step = 0;
  double step_s = 0;
  double processor_s = 0;                         // of the leader's process
  double crowding = 0;                            // threads that could run for each core (rank_times.h)
  double others = 0;                              // the part of these that are not threads of this run
  double crowded_out_s = 0;                       // of the rank that has most of it (rank_times.h)
  std::vector<double> own_s, message_s, input_s;  // by rank
};

// `processes`: of this run on the leader's host.
TimedStep timed_step(const StepMetrics& metrics, int processes);

struct Drift {
  int64_t since_step = 0, step = 0;  // the first that was slower, and the one at which it was certain
  double before_s = 0, now_s = 0;    // medians of step times
  DriftCause cause = DriftCause::unknown;
  std::optional<int64_t> rank = {};  // where it is one rank's

  std::string text() const;
};

// Whether time in messages was measured apart from the rank's own: not where a device makes its own messages.
enum class MessagesTimed : uint8_t { no, yes };

class DriftWatch {
 public:
  static constexpr size_t kBlock = 10;          // steps
  static constexpr size_t kFewest = 4;          // blocks of a baseline that is compared with
  static constexpr size_t kBaseline = 40;       // blocks it is made of at most
  static constexpr double kSmallest = 1.10;     // what is less slow than that is no drift
  static constexpr double kLeastSeconds = 0.5;  // that it must have lasted
  static constexpr double kLongShared = 1800;   // seconds that other programs must have used the processors

  explicit DriftWatch(MessagesTimed messages_timed) : messages_timed_(messages_timed) {}

  // The steps of a run in order, without those that were slow on purpose (timed op by op). A drift is told once; what
  // follows is compared with the new pace.
  std::optional<Drift> note(const TimedStep& step);

 private:
  struct Block {
    int64_t first_step = 0;
    double log_s = 0, seconds = 0;  // of its median; of all its steps
    double processor_s = 0;
    double crowding = 0, others = 0, crowded_out_s = 0;  // means
    std::vector<double> own_s, message_s, input_s;       // medians, by rank
  };
  struct Level {
    double centre = 0, spread = 0;
  };
  // By which share steps became longer, and their time without what a rank was ready without a core.
  struct Growth {
    double all = 0, with_core = 0;
  };
  Level level() const;
  static Block block_of(const std::vector<TimedStep>& steps);
  std::optional<Drift> add(Block block);
  Drift drift(const Level& level) const;
  void name_cause(Drift& drift) const;
  Growth growth() const;
  bool is_explained_by_others(const Drift& drift) const;
  void forget_slow();
  void begin_again();

  MessagesTimed messages_timed_;
  int64_t seen_ = 0;
  std::vector<TimedStep> open_;  // of the next block
  std::vector<Block> baseline_;
  std::vector<Block> slow_;       // since `slower_` was last 0, the last of them
  double slow_seconds_ = 0;       // of all of them
  int64_t slow_since_ = 0;        // the first step of all of them
  std::vector<Block> suspected_;  // since both sums were last 0
  double slower_ = 0, faster_ = 0;
};

}  // namespace sextant
