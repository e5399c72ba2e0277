// The page of a plan (`plan --html`): the plan itself, and those around it to choose from.
#pragma once

#include <functional>
#include <string>

#include "app/plan_arguments.h"
#include "config/run_config.h"
#include "cost/machine.h"
#include "cost/software_profile.h"
#include "ir/plan.h"
#include "models/spec.h"
#include "plan/run_plan.h"

namespace sextant {

struct PlanPageParts {
  const PlanArguments& arguments;
  const std::string& command;  // all that was typed
  const RunConfig& run;
  const ModelSpec& spec;
  const Machine* machine = nullptr;
  const SoftwareProfile& profile;
  std::function<Target(const RunConfig& run, int ranks)> target;
  const PlanRequest& request;  // of the plan
  const RunPlan& plan;
  const Trace& trace;
};

std::string plan_page(const PlanPageParts& parts);

}  // namespace sextant
