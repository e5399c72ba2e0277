// How often an op that only streams crosses memory in a given software.
#pragma once

#include "cost/software_profile.h"
#include "ir/op_def.h"

namespace sextant {

Passes passes_of(const SoftwareProfile& profile, const OpDef& op);

}  // namespace sextant
