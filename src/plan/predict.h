// A run lowered once and priced as often as one likes: the Programs, and what the simulator says of them on a machine.
#pragma once

#include "cost/machine.h"
#include "cost/stack.h"
#include "plan/programs.h"
#include "sim/simulate.h"

namespace sextant {

struct LoweredRun {
  RunShape shape;
  RunPrograms programs;
};

LoweredRun lower_run(const RunConfig& config, const ModelSpec& spec, const Target& target, Checks checks = Checks::end);

struct Where {
  const Machine& machine;
  const Efficiencies& efficiency;
  const Stack& stack;
};

SimResult simulate_run(const LoweredRun& run, const Where& where, const SimOptions& options = {});

// Flops of one step over all ranks, per token: what the model asks for, and what is executed.
struct FlopsPerToken {
  double model_causal = 0, model_full = 0, executed = 0;
};
FlopsPerToken flops_per_token(const LoweredRun& run, int64_t tokens_per_step);

}  // namespace sextant
