// The Target of an accelerator that is planned for and not here: kernels as ours would be, scratch as the libraries ask
// for it.
#pragma once

#include "cost/software_profile.h"
#include "ir/plan.h"

namespace sextant {

Target accelerator_target(const SoftwareProfile& profile);

}  // namespace sextant
