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

// Name of the trained model for a title: the preset's name, or its architecture.
std::string model_name(const RunConfig& run, const ModelSpec& spec);

}  // namespace sextant
