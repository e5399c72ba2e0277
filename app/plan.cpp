#include "app/device.h"
#include "app/verbs.h"
#include "config/load.h"
#include "plan/report.h"
#include "train/dataset.h"

namespace sextant {

void plan_verb(const PlanArguments& arguments) {
  RunConfig run = load_config(arguments.config, arguments.overrides);
  RunShape shape = run_shape(run, resolve_spec(run));
  PlanReport report = plan_report(run, shape, target_for(run, shape.mesh.world_size()));
  fmt::print("{}", arguments.json ? report_json(report) : report_text(report));
}

}  // namespace sextant
