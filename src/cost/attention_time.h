// The time of attention: a fused kernel at the rate that the machine's table gives its generation, or the GEMMs and
// passes over the scores that take its place where they are written to memory.
#pragma once

#include "cost/machine.h"
#include "cost/software_profile.h"
#include "ir/cost.h"

namespace sextant {

struct AttentionTime {
  double seconds = 0;
  double kernels = 1;  // launched for it
};

AttentionTime attention_time(const Machine& machine, const Efficiencies& efficiency, const SoftwareProfile& profile,
                             const AttentionWork& work, const std::string& dtype);

}  // namespace sextant
