// Simulated times of a lowered run on a machine, and the flops that its Programs count.
#pragma once

#include "cost/machine.h"
#include "cost/rank_placement.h"
#include "cost/software_profile.h"
#include "exec/sim/simulate.h"
#include "run/programs.h"

namespace sextant {

struct Where {
  const Machine& machine;
  const Efficiencies& efficiency;
  const SoftwareProfile& profile;
  double expert_imbalance = 1;  // as Pricer has it
  RankPlacement placement = {};
};

SimResult simulate_run(const LoweredRun& run, const Where& where, const SimOptions& options = {});

// Flops of one step per token: what the model asks for, whatever the mesh, and what all ranks execute together. Ranks
// that hold the same repeat what no axis splits (of latent attention the narrow projections, under tensor parallelism).
struct FlopsPerToken {
  double model_causal = 0, model_full = 0, executed = 0;
};
FlopsPerToken flops_per_token(const LoweredRun& run, const BatchSection& batch);

// Denominator of MFU: the FLOP/s that a device reaches at most in GEMMs of these weights; 0 where the machine's file
// does not give it.
double peak_flops_per_s(const Machine& machine, DType weights);

}  // namespace sextant
