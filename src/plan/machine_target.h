// The target of a run on a machine that is planned for: under our own software exactly the one that `train` would lower
// for there.
#pragma once

#include "config/run_config.h"
#include "cost/machine.h"
#include "cost/software_profile.h"
#include "ir/plan.h"

namespace sextant {

struct MachineTargetRequest {
  const RunConfig& run;
  int ranks;  // of the run; on a CPU they share the machine
  const Machine& machine;
  const SoftwareProfile& profile;
};

Target machine_target(const MachineTargetRequest& request);

}  // namespace sextant
