#include "app/device.h"
#include "app/verbs.h"
#include "config/load.h"
#include "plan/report.h"
#include "train/dataset.h"

namespace sextant {

void plan_verb(const PlanArguments& arguments) {
  RunConfig run = load_config(arguments.config, arguments.overrides);
  PlanReport report = plan_report(run, run_shape(run, resolve_spec(run)), target_for(run));
  fmt::print("{}", arguments.json ? report_json(report) : report_text(report));
}

}  // namespace sextant
