// Assumptions of a plan: the machine's figures, the efficiencies that were used, the software, each with its source.
#pragma once

#include "cost/machine.h"
#include "cost/software_profile.h"
#include "plan/run_plan.h"
#include "view/page.h"

namespace sextant {

void assumptions_section(Page& page, const RunPlan& plan, const Machine& machine, const SoftwareProfile* profile);

}  // namespace sextant
