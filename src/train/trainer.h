// Trainer: one rank's Programs bound to memory, with data flowing in and numbers coming out. It knows nothing of files.
#pragma once

#include <memory>
#include <optional>

#include "config/run_config.h"
#include "exec/executor.h"
#include "plan/programs.h"
#include "train/crew.h"
#include "train/dataset.h"
#include "train/feeder.h"
#include "train/metrics.h"

namespace sextant {

class Trainer {
 public:
  // All must outlive the trainer; the executor sits at the crew's rank.
  struct Parts {
    const RunConfig& run;
    const RunPrograms& programs;
    const Dataset& dataset;
    Executor& executor;
    Crew& crew;
  };
  explicit Trainer(const Parts& parts);

  Bound& bound() { return *train_; }
  int64_t arena_bytes() const { return arena_->bytes(); }

  // Step `step` (from 1) on the samples from `first_sample` on. Fills in all of the metrics but tokens, the same on every
  // rank.
  StepMetrics run_step(int64_t step, int64_t first_sample);

  // Mean loss over the first eval_batches microbatches of the validation data.
  std::optional<double> evaluate();

 private:
  int64_t microbatch_sequences() const { return run_.batch.microbatch * run_.mesh.dp; }  // over all ranks
  double loss_here(const Bound& bound) const;  // what this rank adds to the sum over ranks

  const RunConfig& run_;
  const Dataset& dataset_;
  Crew& crew_;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<Bound> train_;
  std::unique_ptr<Bound> evaluate_;
  int loss_chunk_ = -1;
  std::unique_ptr<Feeder> train_feeder_;
  std::unique_ptr<Feeder> evaluate_feeder_;
};

}  // namespace sextant
