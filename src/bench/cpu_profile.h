// A CPU as a Machine, measured: small models of several sizes trained for a moment, op by op, on as many ranks as share
// the processor; and what a message between them takes. With it the simulator predicts the step times of other models
// on it.
#pragma once

#include "bench/rank_threads.h"
#include "bench/stop.h"
#include "cost/machine.h"
#include "exec/probe.h"

namespace sextant {

struct CpuProfileRequest {
  std::string name;
  DeviceProbe& probe;  // of one rank's threads
  const ExecutorMaker& make_executor;
  Target target;    // of those executors
  int threads = 1;  // of each rank
  int ranks = 1;    // that share the processor and are busy at once
  double seconds_per_model = 0.8;
};

// Stopped early, it knows the ops it has seen.
Machine measure_cpu(const CpuProfileRequest& request, const Watch& watch);

}  // namespace sextant
