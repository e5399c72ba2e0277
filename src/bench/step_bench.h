// Training steps of a run's own Programs on random tokens, timed. In: a config with its model and what makes executors.
// Out: the seconds of each step, and with tracing the events of each rank's ops, step by step. No data is read, nothing
// is kept.
#pragma once

#include <cstdint>
#include <vector>

#include "base/trace.h"
#include "bench/rank_threads.h"
#include "bench/stop.h"
#include "plan/predict.h"

namespace sextant {

enum class Tracing : uint8_t { off, on };

struct StepRequest {
  const RunConfig& run;
  const ModelSpec& spec;
  const ExecutorMaker& make_executor;
  int threads = 1;        // of each rank
  double at_least_s = 1;  // goes on until so much time has passed,
  int least_steps = 3;    // and so many steps,
  int most_steps = 1000;  // but no more than these
  Tracing tracing = Tracing::off;
};

struct StepTimes {
  std::vector<double> seconds;             // of each step after the first ones, which warm up
  std::vector<std::vector<Trace>> traces;  // [rank][step]
};

// `lowered` is the run's, for the executors' target.
StepTimes time_steps(const StepRequest& request, const LoweredRun& lowered, const Watch& watch);

// Random numbers in the feeds and weights of one rank, as training would find them.
void fill_for_training(Bound& bound, const RunConfig& run, int64_t vocab);

}  // namespace sextant
