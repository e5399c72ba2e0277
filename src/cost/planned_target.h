// The target of an accelerator that is planned for and may not be here: our own kernels exactly as cuda_target has
// them, or what is known of another's software.
#pragma once

#include "cost/software_profile.h"
#include "targets/cuda/cuda_target.h"

namespace sextant {

// `target` as the profile's software would have it: the same device under other kernels. Our own profile leaves it as
// it is.
Target overlay(Target target, const SoftwareProfile& profile);

Target planned_target(const SoftwareProfile& profile, Determinism determinism = Determinism::fast);

}  // namespace sextant
