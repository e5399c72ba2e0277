// The report of a plan as one HTML file: first the answer (does it fit, how fast, how long, how much), then pictures,
// then tables, then what was assumed and where it comes from. Every figure is read from the RunPlan.
#pragma once

#include <optional>
#include <string>

#include "cost/machine.h"
#include "cost/software_profile.h"
#include "plan/predict.h"
#include "plan/run_plan.h"
#include "view/page.h"
#include "view/pages/plan_explorer.h"

namespace sextant {

struct PlanReportParts {
  const RunPlan& plan;
  const LoweredRun& lowered;
  const Machine* machine = nullptr;  // null: no times, and no figures of a machine
  const SoftwareProfile* profile = nullptr;
  const Trace* trace = nullptr;               // of the simulated step; null: no timeline
  std::optional<ExplorerHtml> explorer = {};  // other plans to choose from
  PageOrigin origin = {};
};

std::string plan_html(const PlanReportParts& parts);

}  // namespace sextant
