#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/device.h"
#include "app/verbs.h"
#include "base/error.h"
#include "base/files.h"
#include "config/load.h"
#include "cost/accelerator.h"
#include "cost/machine_file.h"
#include "cost/stack_file.h"
#include "laws/quantity.h"
#include "laws/report.h"
#include "observe/chrome_trace.h"
#include "plan/run_plan.h"
#include "train/dataset.h"

namespace sextant {

namespace {

std::optional<double> quantity(const std::string& text, const char* option) {
  return text.empty() ? std::nullopt : std::optional(parse_quantity(text, option));
}

bool asks_for_laws(const PlanArguments& a) {
  return a.config.empty() && !(a.compute.empty() && a.tokens.empty() && a.params.empty() && a.fit.empty());
}

void print_laws(const PlanArguments& a) {
  LawsRequest request{.compute = quantity(a.compute, "--compute"),
                      .tokens = quantity(a.tokens, "--tokens"),
                      .params = quantity(a.params, "--params"),
                      .inference_tokens = quantity(a.inference_tokens, "--inference-tokens").value_or(0),
                      .fit_csv = a.fit};
  fmt::print("{}", a.json ? laws_json(request) : laws_text(request));
}

Stack stack_of(const PlanArguments& a) { return a.stack.empty() ? own_stack() : stack_named(load_stacks(), a.stack); }

// Options that only a simulated step can answer.
void require_machine(const PlanArguments& a) {
  for (auto [given, option] : {std::pair(!a.trace.empty(), "--trace"), std::pair(!a.timeline.empty(), "--timeline"),
                               std::pair(!a.tokens.empty(), "--tokens"), std::pair(!a.stack.empty(), "--stack")})
    if (given && a.machine.empty())
      throw UserError({.place = option, .got = "no machine to simulate", .expected = "--machine NAME beside it",
                       .hint = fmt::format("known machines: {}", fmt::join(known_machines(), ", "))});
}

}  // namespace

void plan_verb(const PlanArguments& a) {
  if (!a.validate.empty()) return validate_verb(a);
  if (asks_for_laws(a)) return print_laws(a);
  if (a.config.empty())
    throw UserError({.place = "sextant plan", .got = "no config", .expected = "a run's TOML file, or one of --compute, --tokens, --params, --fit, --validate"});
  require_machine(a);
  RunConfig run = load_config(a.config, a.overrides);
  ModelSpec spec = resolve_spec(run);
  std::optional<Machine> machine;
  if (!a.machine.empty()) machine = load_machine(a.machine);
  Stack stack = stack_of(a);
  Target target = machine ? accelerator_target(stack) : target_for(run, run_shape(run, spec).mesh.world_size());
  LoweredRun lowered = lower_run(run, spec, target);
  SimResult simulated;
  PlanRequest request{.run = run, .lowered = lowered, .machine = machine ? &*machine : nullptr, .stack = &stack,
                      .token_budget = quantity(a.tokens, "--tokens").value_or(0),
                      .simulation = {.trace = a.trace.empty() && a.timeline.empty() && a.report.empty() ? KeepTrace::no : KeepTrace::yes,
                                     .straggler = a.straggler, .jitter = a.jitter}};
  RunPlan plan = make_plan(request, &simulated);
  fmt::print("{}", a.json ? plan_json(plan) : plan_text(plan));
  if (!a.trace.empty()) write_file_atomically(a.trace, chrome_trace(simulated.trace));
}

}  // namespace sextant
