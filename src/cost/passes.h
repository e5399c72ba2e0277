// How often the operands of an op that only streams cross memory in a given software, against once in one kernel of
// ours.
#pragma once

#include <string_view>
#include <vector>

#include "cost/software_profile.h"

namespace sextant {

struct Passes {
  double bytes = 1;  // times the op's own bytes
  double kernels = 1;
};

Passes passes_of(const SoftwareProfile& profile, std::string_view op);
// The ops that take more passes in some software.
std::vector<std::string_view> ops_with_passes();

}  // namespace sextant
