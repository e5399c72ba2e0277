// replay: runs a step of a run again, from the checkpoint before it, with the data and the learning rate that it had.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "replay/document_losses.h"
#include "replay/step_observer.h"
#include "train/data/dataset.h"
#include "train/faults/fault.h"
#include "train/metrics.h"
#include "train/save/run_history.h"
#include "train/train.h"

namespace sextant {

// Numbers of a step in metrics.jsonl. The file names a number that is not finite in its field "non_finite".
struct RecordedStep {
  int64_t step = 0;
  double loss = 0, grad_norm = 0;
};
std::optional<RecordedStep> recorded_step(const std::filesystem::path& run, int64_t step);

// A step of a run and everything that is needed to run it again.
struct ReplayPlan {
  std::filesystem::path directory;  // of the run
  int64_t step = 0;
  RunConfig run;                     // as in that step, with the overrides
  int64_t first_sample = 0;          // of the step
  int64_t microbatch_sequences = 0;  // over all ranks
  std::filesystem::path checkpoint;  // the latest before it; empty: the run's beginning
  int64_t checkpoint_step = 0;
};

// UserError where the run has no such step, no checkpoint or beginning is left from which it can be reached, or an
// override would make another step of it.
ReplayPlan plan_replay(const std::filesystem::path& run, int64_t step, const std::vector<std::string>& overrides);

struct Execution {
  StepMetrics metrics;              // of the step
  std::vector<ObservedOutput> ops;  // of all ranks, in order; where they were asked for
};

struct Replayed {
  std::vector<StepMetrics> before;    // of the steps from the checkpoint on
  std::vector<Execution> executions;  // of the step, each from the same weights
  std::optional<LossesOfStep> documents;
};

struct ReplayOptions {
  int times = 1;
  bool ops = false;        // observe every op of the step
  bool documents = false;  // measure the loss of its documents
  // Faults of kind spoils_op, which strike in their step of every execution: what a fault of software would do.
  std::vector<Fault> faults = {};
};

// Runs the steps from the checkpoint to the one before, and then the step itself. Writes nothing.
Replayed replay(const ReplayPlan& plan, const Dataset& dataset, const MakeExecutor& make_executor,
                const ReplayOptions& options);

}  // namespace sextant
