// The network of published runs: a machine's file has its own, and the source of a profile may describe another.
#pragma once

#include "cost/machine.h"
#include "cost/software_profile.h"

namespace sextant {

Machine with_network_of(const SoftwareProfile& profile, Machine machine);

}  // namespace sextant
