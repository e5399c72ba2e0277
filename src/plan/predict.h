// What the simulator says of a lowered run on a machine, and the flops that its Programs count.
#pragma once

#include "cost/machine.h"
#include "cost/software_profile.h"
#include "exec/sim/simulate.h"
#include "run/programs.h"

namespace sextant {

struct Where {
  const Machine& machine;
  const Efficiencies& efficiency;
  const SoftwareProfile& profile;
};

SimResult simulate_run(const LoweredRun& run, const Where& where, const SimOptions& options = {});

// Flops of one step over all ranks, per token: what the model asks for, and what is executed.
struct FlopsPerToken {
  double model_causal = 0, model_full = 0, executed = 0;
};
FlopsPerToken flops_per_token(const LoweredRun& run, int64_t tokens_per_step);

}  // namespace sextant
