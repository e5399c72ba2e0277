// `sextant plan`: memory and time of one run, before it starts.
#include <fmt/format.h>

#include "answers/plan_grid.h"
#include "app/common_options.h"
#include "app/given_options.h"
#include "app/output_file.h"
#include "app/plan_arguments.h"
#include "app/plan_page.h"
#include "app/report_file.h"
#include "app/verb.h"
#include "app/verbosity_options.h"
#include "base/error.h"
#include "config/load.h"
#include "plan/expert_imbalance.h"
#include "plan/run_plan.h"
#include "run/fit.h"
#include "run/resolve_spec.h"
#include "view/chrome_trace.h"
#include "view/pages/plan_pictures.h"

namespace sextant {

namespace {

void add_picture_options(CLI::App& verb, PlanArguments& a, CLI::Option* machine) {
  verb.add_option("--trace", a.trace, "write the simulated step for Perfetto")
      ->check(output_file("--trace"))
      ->needs(machine);
  verb.add_option("--timeline", a.timeline, "draw the simulated step (SVG)")
      ->check(output_file("--timeline"))
      ->needs(machine);
  verb.add_option("--memory-timeline", a.memory_timeline, "draw what the memory holds during the step (SVG)")
      ->check(output_file("--memory-timeline"));
  verb.add_option("--mesh", a.mesh, "draw the mesh: who talks to whom along which axis (SVG)")
      ->check(output_file("--mesh"));
}

void add_page_options(CLI::App& verb, PlanArguments& a, CLI::Option* machine) {
  CLI::Option* html =
      verb.add_option("--html", a.html, "write the plan as one HTML file")->check(output_file("--html"));
  verb.add_option("--vary", a.vary,
                  "values to choose from on the page, such as devices=64,128 batch.seq=8192 mesh.tp=4,8 (may be "
                  "repeated) [half and twice the devices, batch.sequences and batch.seq]")
      ->allow_extra_args(false)
      ->needs(html);
  verb.add_option("--layouts", a.layouts,
                  "so many layouts of a search to choose from on the page [those next to the config's]")
      ->check(CLI::Range(int64_t{0}, kMostGridLayouts))
      ->needs(html)
      ->needs(machine);
}

void add_plan_options(CLI::App& verb, PlanArguments& a) {
  add_config(verb, a.config, a.overrides);
  verb.add_flag("--json", a.json, "print JSON");
  CLI::Option* machine = add_target_options(verb, a.target);
  add_quiet(verb, a.verbosity, "no list of files written");
  verb.add_option("--tokens", a.tokens, "tokens to train on: days and cost of the run")->needs(machine);
  add_page_options(verb, a, machine);
  add_picture_options(verb, a, machine);
  verb.add_option("--straggler", a.straggler, "every device is this much slower than it should be")
      ->check(CLI::Range(1.0, 1000.0))
      ->capture_default_str()
      ->needs(machine);
  verb.add_option("--jitter", a.jitter, "spread of op times, as a share")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str()
      ->needs(machine);
  add_imbalance(verb, a.imbalance)->needs(machine);
}

// Of our own software. Layouts of others' are searched: these settings are tried by the bytes of our Programs.
void print_what_would_fit(const RunConfig& run, const ModelSpec& spec, const PlannedTarget& place,
                          const Target& target) {
  if (place.profile.kernels != Kernels::ours) return fmt::print("\n`sextant search` looks for layouts that fit\n");
  Bytes room{static_cast<int64_t>(place.machine->device.memory_bytes - place.machine->context_bytes)};
  std::vector<Alternative> found = settings_that_fit(run, spec, target, room);
  fmt::print("\n{}\n",
             found.empty() ? "nothing near these settings fits; `sextant search` looks further" : "would fit");
  for (const Alternative& alternative : found)
    fmt::print("  {}  ({})\n", alternative.overrides, human(alternative.arena));
}

void write_pictures(const PlanPageParts& parts) {
  const PlanArguments& a = parts.arguments;
  const RunPlan& plan = parts.plan;
  auto write = [&](const std::string& file, const auto& make) {
    if (!file.empty()) write_report(file, make(), file_remarks(a));
  };
  auto write_step = [&](const std::string& file, const char* option, const auto& make) {
    if (plan.fits()) return write(file, make);
    if (!file.empty())
      fmt::print(stderr, "{}: {} is not written: what does not fit has no step to draw\n", option, file);
  };
  write_step(a.trace, "--trace", [&] { return chrome_trace(parts.trace); });
  write_step(a.timeline, "--timeline", [&] { return step_timeline_svg(plan, parts.trace); });
  write(a.memory_timeline, [&] { return memory_svg(memory_picture(plan, parts.request.lowered)); });
  write(a.mesh, [&] { return mesh_svg(mesh_picture(plan, parts.request.lowered, parts.machine)); });
  write(a.html, [&] { return plan_page(parts); });
}

void require_expert_ranks(const std::string& imbalance, const LoweredRun& lowered) {
  if (imbalance.empty() || lowered.shape.mesh.ranks(ExpertRole::expert) > 1) return;
  throw UserError({.place = "--imbalance",
                   .got = "no ranks of this run divide experts",
                   .expected = "mesh.ep above 1",
                   .hint = "leave it out"});
}

ExitCode run_plan(const PlanArguments& a, VerbContext& context) {
  require_values(*context.verb);
  RunConfig run = load_config(a.config, a.overrides);
  ModelSpec spec = resolve_spec(run);
  PlannedTarget place = planned_target(a.target, spec);
  Target target = target_at(place, run, run_shape(run, spec).mesh.world_size());
  LoweredRun lowered = lower_run(run, spec, target);
  require_expert_ranks(a.imbalance, lowered);
  bool traced = !a.trace.empty() || !a.timeline.empty() || !a.html.empty();
  SimResult simulated;
  std::optional<IntervalModel> intervals;
  if (place.machine) intervals = load_interval_model();
  PlanRequest request{
      .run = run,
      .lowered = lowered,
      .machine = place.machine ? &*place.machine : nullptr,
      .profile = &place.profile,
      .token_budget = given_quantity(a.tokens, "--tokens").value_or(0),
      .imbalance = read_expert_imbalance(a.imbalance, "--imbalance"),
      .simulation = {.trace = traced ? KeepTrace::yes : KeepTrace::no, .straggler = a.straggler, .jitter = a.jitter},
      .intervals = intervals ? &*intervals : nullptr};
  RunPlan plan = make_plan(request, &simulated);
  fmt::print("{}", a.json ? plan_json(plan) : plan_text(plan));
  // Settings that need less device memory do not need less host memory.
  if (!plan.fits_device() && !a.json) print_what_would_fit(run, spec, place, target);
  write_pictures({.arguments = a,
                  .command = context.command,
                  .run = run,
                  .spec = spec,
                  .machine = request.machine,
                  .profile = place.profile,
                  .target = [&](const RunConfig& other, int ranks) { return target_at(place, other, ranks); },
                  .request = request,
                  .plan = plan,
                  .trace = simulated.trace});
  return plan.fits() ? ExitCode::finished : ExitCode::does_not_fit;
}

constexpr ValueFormat kPlanValues[] = {
    {"KEY=VALUES", "key=value,value, such as optimizer.lr=1e-3,3e-3", "--vary"},
    {"LAYOUTS", "layouts", "--layouts"},
    {"SHARE", "", "--jitter"},
    {"FACTOR", "", "--straggler"},
    {"FILE", "the name of a file to write", "--trace --memory-timeline --mesh"},
};

}  // namespace

const VerbDef plan_verb{
    .words = "plan",
    .summary = "Memory and time of a run before it starts",
    .details = "With --machine, times and their intervals; with --tokens, days and cost",
    .examples =
        "sextant plan configs/demo.toml batch.seq=256\n"
        "sextant plan configs/demo.toml --machine h200 --html plan.html",
    .values = kPlanValues,
    .declare = declare_verb<add_plan_options, run_plan>,
};

}  // namespace sextant
