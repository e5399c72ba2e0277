#include "app/plan_page.h"

#include <fmt/format.h>

#include "answers/plan_grid.h"
#include "app/page_origin.h"
#include "view/pages/plan_explorer.h"
#include "view/pages/plan_html.h"

namespace sextant {

namespace {

// Of a point of the grid: what must be typed for the same plan.
PointCommand point_command(const PlanArguments& a) {
  PointCommand command{.before = fmt::format("sextant plan {}", a.config), .behind = {}};
  for (const std::string& override : a.overrides) command.before += " " + override;
  auto add = [&](std::string_view option, const std::string& value) {
    if (!value.empty()) command.behind += fmt::format(" {} {}", option, value);
  };
  add("--machine", a.target.machine);
  add("--software", a.target.software);
  add("--tokens", a.tokens);
  add("--imbalance", a.imbalance);
  if (a.straggler != 1) add("--straggler", fmt::format("{}", a.straggler));
  if (a.jitter != 0) add("--jitter", fmt::format("{}", a.jitter));
  return command;
}

}  // namespace

std::string plan_page(const PlanPageParts& parts) {
  const PlanArguments& a = parts.arguments;
  std::vector<std::string> entries(kMostGridPlans);
  PlanGrid grid =
      plan_grid({.config = a.config,
                 .overrides = a.overrides,
                 .run = parts.run,
                 .spec = parts.spec,
                 .machine = parts.machine,
                 .profile = parts.profile,
                 .target = parts.target,
                 .token_budget = parts.request.token_budget,
                 .imbalance = parts.request.imbalance,
                 .simulation = parts.request.simulation,
                 .intervals = parts.request.intervals,
                 .vary = changes_of(a.vary, "--vary"),
                 .layouts = a.layouts,
                 .keep = [&](const GridPlan& planned) { entries[planned.point] = PlanExplorer::entry_of(planned); }});
  return plan_html({.plan = parts.plan,
                    .lowered = parts.request.lowered,
                    .machine = parts.machine,
                    .profile = parts.machine ? &parts.profile : nullptr,
                    .trace = parts.machine ? &parts.trace : nullptr,
                    .explorer = PlanExplorer(grid, entries).html(point_command(a)),
                    .origin = page_origin(model_name(parts.run, parts.spec), a.config, parts.command)});
}

}  // namespace sextant
