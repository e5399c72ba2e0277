// Trainer: one rank's Programs bound to memory, with data flowing in and numbers coming out. It knows nothing of files.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "comm/host_group.h"
#include "config/run_config.h"
#include "exec/executor.h"
#include "run/programs.h"
#include "train/data/dataset.h"
#include "train/data/feeder.h"
#include "train/evaluator.h"
#include "train/health/spike_watch.h"
#include "train/health/step_clock.h"
#include "train/metrics.h"
#include "train/noise_scale.h"
#include "train/step_drill.h"
#include "train/step_totals.h"
#include "train/tensor_statistics.h"

namespace sextant {

class Trainer {
 public:
  // All must outlive the trainer; the executor sits at the group's rank.
  struct Parts {
    const RunConfig& run;
    const RunPrograms& programs;
    const Dataset& dataset;
    Executor& executor;
    HostGroup& group;
    RankStatus* rank_status = nullptr;  // updated as it advances; optional
  };
  explicit Trainer(const Parts& parts);

  Bound& bound() { return *train_.bound; }
  int64_t arena_bytes() const { return arena_->bytes(); }
  int64_t host_arena_bytes() const { return arena_->host_bytes(); }
  int64_t nvme_arena_bytes() const { return arena_->nvme_bytes(); }

  // Issues step `step` (from 1) on the samples from `first_sample` on. Its numbers are collected later, in the same
  // order: on a device that works beside the host, the next step is then already under way. With a trace, ops are timed
  // one by one.
  void begin_step(int64_t step, int64_t first_sample, const StepPolicy& policy = {}, Trace* trace = nullptr);
  // Faults of the step that is begun next.
  void drill_next(const StepDrill& drill) { drill_next_ = drill; }
  // From now on every step waits so long for its data: a drill.
  void slow_down_input(int64_t milliseconds) { slow_input_ms_ = milliseconds; }
  StepClock& clock() { return clock_; }
  // The numbers of the oldest step that was begun and not finished, the same on every rank: those that Programs hand
  // out, and those of its time and memory. A step that lost rows on their way to experts has changed nothing, and is
  // done again here.
  StepMetrics finish_step();
  int steps_under_way() const { return static_cast<int>(steps_begun_ - steps_finished_); }
  int steps_ahead() const { return steps_ahead_; }

  // The first microbatch of a step on samples from `first_sample` on, forward and backward, between steps: a hash of
  // the loss and of each gradient before it is summed over ranks. `drill`: of it, a product's bit is flipped. By
  // all ranks together; the next step is as if it had not been.
  std::vector<uint64_t> hash_microbatch(int64_t step, int64_t first_sample, const StepDrill& drill);
  const std::vector<std::string>& hashed_paths() const { return hashed_paths_; }  // of the last
  int64_t first_row() const { return train_.feeder->first_row(); }                // of a microbatch, on this rank

  // Mean loss over the first train.eval_sequences sequences of the validation data.
  std::optional<double> evaluate() { return evaluator_ ? evaluator_->evaluate() : std::nullopt; }
  // Mean loss of the targets that count of one microbatch of training samples, as an evaluation measures it: nothing is
  // changed. Nothing where the run has no Program for it, or no target counts.
  std::optional<double> measure(const Feeder::Samples& samples) {
    return evaluator_ ? evaluator_->measure(samples) : std::nullopt;
  }

 private:
  double batch_tokens() const { return static_cast<double>(run_.batch.sequences * run_.batch.seq); }
  double microbatch_share() const {
    return static_cast<double>(microbatch_sequences()) / static_cast<double>(run_.batch.sequences);
  }
  int64_t microbatch_sequences() const {  // over all ranks
    return run_.batch.microbatch * train_.bound->program().mesh.ranks(AxisRole::data);
  }
  // A Program of training with what it is run by.
  struct Runner {
    std::unique_ptr<Bound> bound;
    std::unique_ptr<Feeder> feeder;
    std::unique_ptr<StepReader> reader;
    std::optional<TensorReader> tensors = {};  // where it measures them
  };
  Runner make_runner(const Parts& parts, const Program& program);
  int mtp_depths() const { return static_cast<int>(mtp_scales_.size()); }

  struct Begun {
    int64_t step, first_sample;
    double lr;
    bool spoiled;  // its gradients are to be not finite
    float norm_limit;
    StepTotals totals;
    std::vector<double> mtp_targets;  // of all microbatches and ranks, by depth of multi-token prediction
    int64_t end = 0;                  // a mark of the executor, where steps are issued ahead
    bool measures = false;            // its tensors
    TensorParts tensors;              // what it measured
  };
  void count_mtp_targets(Begun& begun);
  void write_feeds(Bound& bound, const Begun& begun);
  void issue(Runner& runner, Begun& begun, Trace* trace);
  double seconds_of(const Begun& begun);  // since the step before it ended; once for each, in order
  void note_noise(StepValues& values);
  bool measures(int64_t step) const { return measure_ && step % run_.log.tensor_stats_every == 0; }
  Runner& runner_of(const Begun& begun) { return begun.measures ? *measure_ : train_; }
  void repeat_step(Begun& begun, StepValues& values);
  void join(Begun& begun, StepValues& values);
  void feed(Runner& runner, const Action& action, const Begun& begun);

  const RunConfig& run_;
  const Dataset& dataset_;
  Executor& executor_;
  HostGroup& group_;
  RankStatus* rank_status_;
  std::unique_ptr<Arena> arena_;
  Runner train_;
  struct Repeat {
    int64_t rounds;
    Runner runner;
  };
  std::vector<Repeat> repeat_;  // where rows may be lost: as RunPrograms::repeat
  int64_t repeated_steps_ = 0;
  std::optional<Runner> measure_;  // for steps that measure their tensors
  NoiseScale noise_scale_;
  int64_t noise_parts_ = 0;
  StepDrill drill_next_;
  std::vector<std::string> hashed_paths_;
  StepChecks checks_;  // of the step that was begun last
  StepPlaces places_;
  std::vector<std::string> mtp_scales_;  // feeds, by depth of multi-token prediction
  int steps_ahead_ = 0;
  std::vector<Begun> begun_;  // those under way, in turn; made once, so that a step allocates nothing
  int64_t steps_begun_ = 0, steps_finished_ = 0;
  double last_finish_s_ = 0;
  int64_t last_end_ = 0;  // a mark of the executor
  StepClock clock_;
  int64_t slow_input_ms_ = 0;
  std::unique_ptr<Evaluator> evaluator_;  // null where the run has no Programs for it
};

}  // namespace sextant
