// Evaluator: the loss on samples that nothing is trained on, by the Programs of evaluation in the arena of training.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "comm/host_group.h"
#include "config/run_config.h"
#include "exec/executor.h"
#include "run/programs.h"
#include "train/data/dataset.h"
#include "train/data/feeder.h"

namespace sextant {

class Evaluator {
 public:
  struct Parts {
    const RunConfig& run;
    const Program& program;
    const Dataset& dataset;
    Executor& executor;
    Arena& arena;
    HostGroup& group;
    RankStatus* rank_status = nullptr;  // updated as it advances; optional
  };
  // All must outlive it.
  explicit Evaluator(const Parts& parts);

  // Mean loss over the first train.eval_sequences sequences of the validation data; nothing where there is none.
  std::optional<double> evaluate();
  // Mean loss of the targets that count of one microbatch of training samples; nothing where no target counts.
  std::optional<double> measure(const Feeder::Samples& samples);

 private:
  struct Sums {
    double loss = 0, targets = 0;
  };
  // Adds the loss of a microbatch that this rank accounts for, and the targets that count.
  void add_part(Feeder& feeder, const Feeder::Samples& part, Sums& sums);
  Sums over_ranks(const Sums& sums);

  Parts parts_;
  std::unique_ptr<Bound> bound_;
  std::unique_ptr<Feeder> validation_;  // null without validation data
  std::unique_ptr<Feeder> training_;
};

}  // namespace sextant
