// Trainer: a run's Programs bound to memory, with data flowing in and numbers coming out. It knows nothing of files.
#pragma once

#include <memory>
#include <optional>

#include "config/run_config.h"
#include "exec/executor.h"
#include "plan/programs.h"
#include "train/dataset.h"
#include "train/metrics.h"

namespace sextant {

class Trainer {
 public:
  // All must outlive the trainer.
  Trainer(const RunConfig& run, const RunPrograms& programs, const Dataset& dataset, Executor& executor);

  Bound& bound() { return *train_; }
  int64_t arena_bytes() const { return arena_->bytes(); }

  // Step `step` (from 1) on the samples from `first_sample` on. Fills in all of the metrics but tokens.
  StepMetrics run_step(int64_t step, int64_t first_sample);

  // Mean loss over the first eval_batches microbatches of the validation data.
  std::optional<double> evaluate();

 private:
  int64_t microbatch_tokens() const { return run_.batch.microbatch * run_.batch.seq; }
  int64_t fill(const BatchSampler& sampler, int64_t first_sample, Bound& bound);  // returns how many targets count

  const RunConfig& run_;
  const RunPrograms& programs_;
  const Dataset& dataset_;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<Bound> train_;
  std::unique_ptr<Bound> evaluate_;
  std::vector<int32_t> tokens_;
  std::vector<int32_t> targets_;
};

}  // namespace sextant
