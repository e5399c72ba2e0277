// bench ops --config: the ops of a config's training steps, timed where they stand. Enters: the run's Programs and what
// makes executors; leaves: a result for each op and size of its operands on a rank, with the samples of all ranks. So
// an op finds real operands: a router's choice where tokens are sent to experts.
#pragma once

#include "bench/result.h"
#include "bench/step_bench.h"

namespace sextant {

struct TracedOpsRequest {
  StepRequest steps;      // traced, whatever it says
  std::string only = {};  // ops whose name contains this
};
// Messages are left to bench comm: what they take is, for most ranks, waiting for the last.
void bench_traced_ops(const TracedOpsRequest& request, const LoweredRun& lowered, BenchReport& report,
                      const Watch& watch);

}  // namespace sextant
