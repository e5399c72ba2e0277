#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "app/device.h"
#include "app/page_origin.h"
#include "app/plan_options.h"
#include "app/plan_page.h"
#include "app/verbs.h"
#include "base/error.h"
#include "base/files.h"
#include "config/load.h"
#include "cost/machine_file.h"
#include "cost/software_profile_file.h"
#include "laws/quantity.h"
#include "laws/report.h"
#include "plan/expert_imbalance.h"
#include "plan/headroom.h"
#include "plan/machine_target.h"
#include "plan/run_plan.h"
#include "plan/serving.h"
#include "run/fit.h"
#include "run/resolve_spec.h"
#include "search/layout_overrides.h"
#include "search/search.h"
#include "train/data/dataset.h"
#include "validate/known_run.h"
#include "validate/known_run_search.h"
#include "view/chrome_trace.h"
#include "view/pages/plan_pictures.h"
#include "view/pages/search_html.h"

namespace sextant {

namespace {

std::optional<double> quantity(const std::string& text, const char* option) {
  return text.empty() ? std::nullopt : std::optional(parse_quantity(text, option));
}

void print_laws(const PlanArguments& a) {
  LawsRequest request{.compute = quantity(a.compute, "--compute"),
                      .tokens = quantity(a.tokens, "--tokens"),
                      .params = quantity(a.params, "--params"),
                      .inference_tokens = quantity(a.inference_tokens, "--inference-tokens").value_or(0),
                      .fit_csv = a.fit};
  fmt::print("{}", a.json ? laws_json(request) : laws_text(request));
}

// Options that only configure the plan's page require that page.
void require_report(const PlanArguments& a) {
  for (const char* option : {"--vary", "--layouts"})
    if (a.report.empty() && std::ranges::count(a.given, option) > 0)
      throw UserError({.place = option, .got = "requires --html", .expected = "--html FILE"});
}

void require_machine(const PlanArguments& a) {
  if (!a.machine.empty()) return;
  for (const std::string& option : a.given)
    if (needs_machine(option))
      throw UserError({.place = option,
                       .got = "requires --machine",
                       .expected = "--machine NAME",
                       .hint = fmt::format("known machines: {}", fmt::join(known_machines(), ", "))});
}

// Target of a plan: our kernels on this machine, or a machine of machines/ under a software profile.
struct PlanTarget {
  std::optional<Machine> machine;
  SoftwareProfile profile;
};

PlanTarget place_of(const PlanArguments& a, const ModelSpec& spec) {
  PlanTarget place{.machine = {},
                   .profile = a.profile.empty() ? own_profile() : profile_named(load_profiles(), a.profile)};
  if (!a.machine.empty()) place.machine = load_machine(a.machine);
  if (place.machine && spec.experts) place.machine = with_experts(std::move(*place.machine));
  return place;
}

Target target_at(const PlanTarget& place, const RunConfig& run, int ranks) {
  if (!place.machine) return target_for(run, ranks);
  return machine_target({.run = run, .ranks = ranks, .machine = *place.machine, .profile = place.profile});
}

// Of our own software. Layouts of others' are searched: these settings are tried by the bytes of our Programs.
void print_what_would_fit(const RunConfig& run, const ModelSpec& spec, const PlanTarget& place, const Target& target) {
  if (place.profile.kernels != Kernels::ours) return fmt::print("\n--search looks for layouts that fit\n");
  Bytes room{static_cast<int64_t>(place.machine->device.memory_bytes - place.machine->context_bytes)};
  std::vector<Alternative> found = settings_that_fit(run, spec, target, room);
  fmt::print("\n{}\n", found.empty() ? "nothing near these settings fits; --search looks further" : "would fit");
  for (const Alternative& alternative : found)
    fmt::print("  {}  ({})\n", alternative.overrides, human(alternative.arena));
}

// Where nothing was asked for on standard output but the answer, files are listed beside it.
void write_report(const PlanArguments& a, const std::string& file, const std::string& text) {
  write_file_atomically(file, text);
  if (!a.json && a.verbosity != Verbosity::quiet) fmt::print("written     {}\n", file);
}

void require_other_file(const PlanArguments& a) {
  std::error_code none;
  if (!a.write.empty() && std::filesystem::equivalent(a.write, a.config, none))
    throw UserError(
        {.place = "--write " + a.write, .got = "it is the config that plan reads", .expected = "another file"});
}

ExitCode search(const PlanArguments& a, const RunConfig& run, const ModelSpec& spec, const PlanTarget& place) {
  require_other_file(a);
  if (!a.imbalance.empty() && !spec.experts)
    throw UserError({.place = "--imbalance",
                     .got = fmt::format("{} has no experts", spec.architecture),
                     .expected = "a model with experts"});
  std::optional<double> headroom;
  if (std::ranges::count(a.given, "--headroom") > 0) headroom = parse_headroom(a.headroom, "--headroom");
  int64_t devices = a.devices > 0 ? a.devices : run_shape(run, spec).mesh.world_size();
  Target target = target_at(place, run, static_cast<int>(devices));
  IntervalModel intervals = load_interval_model();
  SearchResult result = search_layouts({.run = run,
                                        .spec = spec,
                                        .machine = *place.machine,
                                        .profile = place.profile,
                                        .devices = devices,
                                        .limits = LayoutLimits(a.only, "--only"),
                                        .target = &target,
                                        .token_budget = quantity(a.tokens, "--tokens").value_or(0),
                                        .imbalance = read_expert_imbalance(a.imbalance, "--imbalance"),
                                        .intervals = &intervals,
                                        .headroom = headroom,
                                        .progress = [&](std::string_view text) {
                                          if (!a.json && a.verbosity != Verbosity::quiet)
                                            fmt::print(stderr, "{}\n", text);
                                        }});
  fmt::print("{}", a.json ? search_json(result) : search_text(result));
  if (!a.report.empty())
    write_report(a, a.report, search_html(result, page_origin(model_name(run, spec), a.config, a.command)));
  const Candidate& best = result.best.front();
  if (!a.write.empty())
    write_report(
        a, a.write,
        layout_toml(best.config, fmt::format("The fastest layout of {} on {} × {} ({}) by sextant plan --search.",
                                             run.source, devices, result.device, result.machine)));
  return ExitCode::finished;
}

ExitCode serve(const PlanArguments& a, const RunConfig& run, const ModelSpec& spec, const PlanTarget& place) {
  int64_t context = a.context > 0 ? a.context : std::min<int64_t>(spec.max_seq, 4096);
  Serving serving = plan_serving({.spec = spec,
                                  .machine = *place.machine,
                                  .profile = place.profile,
                                  .tp = run.mesh.tp,
                                  .prompt = a.prompt > 0 ? a.prompt : std::min<int64_t>(1024, context / 2),
                                  .context = context});
  fmt::print("{}{}", a.json ? serving_json(serving) : serving_text(serving), a.json ? "\n" : "");
  return serving.fits() ? ExitCode::finished : ExitCode::does_not_fit;
}

void write_pictures(const PlanPageParts& parts) {
  const PlanArguments& a = parts.arguments;
  const RunPlan& plan = parts.plan;
  auto write = [&](const std::string& file, const auto& make) {
    if (!file.empty()) write_report(a, file, make());
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
  write(a.report, [&] { return plan_page(parts); });
}

ExitCode plan_config(const PlanArguments& a, const RunConfig& run, const ModelSpec& spec, const PlanTarget& place) {
  Target target = target_at(place, run, run_shape(run, spec).mesh.world_size());
  LoweredRun lowered = lower_run(run, spec, target);
  if (!a.imbalance.empty() && lowered.shape.mesh.ranks(ExpertRole::expert) <= 1)
    throw UserError({.place = "--imbalance",
                     .got = "no ranks of this run divide experts",
                     .expected = "mesh.ep above 1",
                     .hint = "leave it out"});
  bool traced = !a.trace.empty() || !a.timeline.empty() || !a.report.empty();
  SimResult simulated;
  std::optional<IntervalModel> intervals;
  if (place.machine) intervals = load_interval_model();
  PlanRequest request{
      .run = run,
      .lowered = lowered,
      .machine = place.machine ? &*place.machine : nullptr,
      .profile = &place.profile,
      .token_budget = quantity(a.tokens, "--tokens").value_or(0),
      .imbalance = read_expert_imbalance(a.imbalance, "--imbalance"),
      .simulation = {.trace = traced ? KeepTrace::yes : KeepTrace::no, .straggler = a.straggler, .jitter = a.jitter},
      .intervals = intervals ? &*intervals : nullptr};
  RunPlan plan = make_plan(request, &simulated);
  fmt::print("{}", a.json ? plan_json(plan) : plan_text(plan));
  // Settings that need less device memory do not need less host memory.
  if (!plan.fits_device() && !a.json) print_what_would_fit(run, spec, place, target);
  write_pictures({.arguments = a,
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

}  // namespace

ExitCode plan_verb(const PlanArguments& a) {
  PlanMode mode = plan_mode(a.given);
  refuse_unused(plan_options(), static_cast<size_t>(mode), a.given);
  if (!a.validate.empty()) {
    validate_verb(a);
    return ExitCode::finished;
  }
  if (mode == PlanMode::laws) {
    print_laws(a);
    return ExitCode::finished;
  }
  if (mode == PlanMode::search_published) {
    IntervalModel intervals = load_interval_model();
    std::vector<KnownRun> runs = read_known_runs(a.published);
    std::vector<KnownRunSearch> results = search_known_runs({.runs = runs,
                                                             .intervals = intervals,
                                                             .limits = LayoutLimits(a.only, "--only"),
                                                             .progress = [&](std::string_view run) {
                                                               if (!a.json && a.verbosity != Verbosity::quiet)
                                                                 fmt::print(stderr, "{}\n", run);
                                                             }});
    fmt::print("{}", a.json ? known_run_searches_json(results) : known_run_searches_text(results));
    return ExitCode::finished;
  }
  if (mode == PlanMode::published) {
    std::vector<KnownRunResult> results = plan_known_runs(read_known_runs(a.published), load_interval_model());
    fmt::print("{}", a.json ? known_runs_json(results) : known_runs_text(results));
    return ExitCode::finished;
  }
  if (a.config.empty())
    throw UserError(
        {.place = "plan",
         .got = "no config",
         .expected = "a run's TOML file, or one of --compute, --tokens, --params, --fit, --validate, --published"});
  require_machine(a);
  require_report(a);
  RunConfig run = load_config(a.config, a.overrides);
  ModelSpec spec = resolve_spec(run);
  PlanTarget place = place_of(a, spec);
  if (mode == PlanMode::search) return search(a, run, spec, place);
  if (mode == PlanMode::serve) return serve(a, run, spec, place);
  return plan_config(a, run, spec, place);
}

}  // namespace sextant
