// check_gemms: writes the share of matrix products that are checked (train.check_gemms) onto every op whose kernel can
// check its own, as attr `checked`. Memory then plans the scratch of the check; which of them are checked in a step is
// drawn when the step runs (exec/step_checks.h).
#pragma once

#include "ir/plan.h"
#include "ir/program.h"

namespace sextant {

void mark_checked_gemms(Program& program, const Target& target, double share);

}  // namespace sextant
