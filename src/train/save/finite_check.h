// Whether what a checkpoint would hold is finite: a run must not go on from NaN.
#pragma once

#include <string>

#include "exec/executor.h"

namespace sextant {

// The first weight or optimizer state of this rank with a NaN or an infinity in it, by its path; empty when there is
// none.
std::string first_non_finite(const StateView& values);

}  // namespace sextant
