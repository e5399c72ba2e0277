#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "answers/plan_grid.h"
#include "app/common_options.h"
#include "app/device.h"
#include "app/given_options.h"
#include "app/output_file.h"
#include "app/page_origin.h"
#include "app/plan_options.h"
#include "app/plan_page.h"
#include "app/verb.h"
#include "app/verbosity_options.h"
#include "base/error.h"
#include "base/files.h"
#include "comm/transport.h"
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
#include "validate/published_run.h"
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

void add_plan_options(CLI::App& verb, PlanArguments& a) {
  verb.add_option("config", a.config, "the run's TOML file (docs/config.md lists every key)");
  verb.add_option("overrides", a.overrides, "key=value pairs that take the place of the file's, such as mesh.tp=8");
  verb.add_flag("--json", a.json, "print JSON");
  verb.add_option("--machine", a.machine, "what it runs on: a name of machines/ or a TOML file");
  verb.add_option("--software,--stack", a.profile,
                  "whose software runs it, a name of machines/software.toml [sextant's own]");
  add_quiet(verb, a.verbosity, "no progress of --search, and no list of files written");
  verb.add_option("--html", a.report, "write the plan, the search or the validation as one HTML file")
      ->check(output_file("--html"));
  verb.add_option("--vary", a.vary,
                  "with --html, of a plan: values to choose from on the page, such as devices=64,128 batch.seq=8192 "
                  "mesh.tp=4,8 (may be repeated) [half and twice the devices, batch.sequences and batch.seq]")
      ->allow_extra_args(false);
  verb.add_option("--layouts", a.layouts,
                  "with --html, of a plan: so many layouts of a search to choose from on the page [those next to "
                  "the config's]")
      ->check(CLI::Range(int64_t{0}, kMostGridLayouts));
  verb.add_option("--trace", a.trace, "write the simulated step for Perfetto")->check(output_file("--trace"));
  verb.add_option("--timeline", a.timeline, "draw the simulated step (SVG)")->check(output_file("--timeline"));
  verb.add_option("--memory-timeline", a.memory_timeline, "draw what the memory holds during the step (SVG)")
      ->check(output_file("--memory-timeline"));
  verb.add_option("--mesh", a.mesh, "draw the mesh: who talks to whom along which axis (SVG)")
      ->check(output_file("--mesh"));
  verb.add_option("--straggler", a.straggler, "every device is this much slower than it should be")
      ->check(CLI::Range(1.0, 1000.0))
      ->capture_default_str();
  verb.add_option("--jitter", a.jitter, "spread of op times, as a share")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  verb.add_option("--imbalance", a.imbalance,
                  "how tokens go to the ranks of experts: balanced, the busiest rank's ratio to the mean, or a run's "
                  "metrics.jsonl");
  verb.add_flag(
      "--search", a.search,
      "find the fastest layouts that fit; with --validate: judge the search by layouts that were measured; with "
      "--published: the fastest layout beside each run's own");
  verb.add_option("--only", a.only,
                  "limits the search, such as zero=0,1 schedule=1f1b tp=4,8; also dp, pp, cp, zero_ranks, chunks, "
                  "microbatch, sequence_parallel, recompute (may be repeated)")
      ->allow_extra_args(false);
  verb.add_option("--devices", a.devices, "with --search: how many it may use [as many as the config's mesh]")
      ->check(CLI::Range(int64_t{1}, kMaxRanks));
  verb.add_option(
      "--headroom", a.headroom,
      "with --search: share of the device's memory that layouts leave free, such as 5% [as much as published "
      "runs with the software took beyond their estimates; docs/planning.md]");
  verb.add_option("--write", a.write,
                  "with --search: write the config with the fastest layout to this TOML file; with --hold-out: the "
                  "errors that intervals are learned from, as CSV")
      ->check(output_file("--write"));
  verb.add_flag("--serve", a.serve, "what serving the model takes: caches, how many sequences, time for each token");
  verb.add_option("--prompt", a.prompt, "with --serve: positions of a prompt [1024, or half the context]")
      ->check(CLI::Range(int64_t{1}, kMaxPositions));
  verb.add_option("--context", a.context,
                  "with --serve: positions kept for each sequence [4096, or what the model can see]")
      ->check(CLI::Range(int64_t{1}, kMaxPositions));
  CLI::Option* validate =
      verb.add_option("--validate", a.validate,
                      "predict measured runs and compare: those of a CSV file, or without one the published runs that "
                      "come with the program")
          ->expected(0, 1)
          ->default_str(std::string(kPublishedRuns));
  verb.add_flag("--calibrate", a.calibrate, "with --validate: fit the machines' efficiencies and print them")
      ->needs(validate);
  verb.add_flag("--hold-out", a.hold_out, "with --validate: predict each source by a fit on the others")
      ->needs(validate);
  verb.add_flag("--memory", a.memory,
                "with --hold-out: how far memory of other software is off, in place of step times");
  verb.add_option("--published", a.published,
                  "the runs that everybody knows (configs/published), or those whose names begin so: what was measured "
                  "beside what we predict")
      ->expected(0, 1)
      ->default_str(std::string(kAllKnownRuns));
  verb.add_option(
      "--tokens", a.tokens,
      "tokens to train on: days and cost, with --search of each layout; without a config, the size they suit");
  verb.add_option("--compute", a.compute,
                  "floating-point operations to spend: the best size and tokens by scaling laws");
  verb.add_option("--params", a.params, "parameters: the tokens and loss that suit them");
  verb.add_option("--inference-tokens", a.inference_tokens, "tokens to be served in the model's life");
  verb.add_option("--fit", a.fit, "fit a scaling law to your own runs (CSV: params, tokens, loss)");
}

ExitCode run_plan(const PlanArguments& options, VerbContext& context) {
  PlanArguments a = options;
  a.given = given_options(*context.verb, plan_options());
  a.command = context.command;
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

constexpr ValueFormat kPlanValues[] = {
    {"KEY=VALUES", "key=value,value, such as optimizer.lr=1e-3,3e-3", "--vary"},
    {"LAYOUTS", "layouts", "--layouts"},
    {"SHARE", "", "--jitter"},
    {"FACTOR", "", "--straggler"},
    {"FILE", "the name of a file to write", "--trace --memory-timeline --mesh"},
    {"POSITIONS", "positions", "--prompt"},
    {"FILE", "a CSV file", "--validate"},
    {"SHARE", "a share, such as 5% or 0.05", "--headroom"},
    {"NAME", "the name of a published run (sextant plan --published lists them)", "--published"},
    {"TOKENS", "a number of tokens, such as 300M or 1.4T", "--inference-tokens"},
    {"FLOPS", "a number of floating-point operations, such as 1e21", "--compute"},
    {"PARAMETERS", "a number of parameters, such as 1B", "--params"},
};

}  // namespace

const VerbDef plan_verb{
    .words = "plan",
    .summary = "Memory, time and cost of a run before it starts",
    .details = "Also the best layout, and scaling laws",
    .examples =
        "sextant plan configs/demo.toml batch.seq=256\n"
        "sextant plan configs/demo.toml --machine h200 --html plan.html\n"
        "sextant plan configs/tiny-llama.toml --machine h100-sxm --search --devices 4 --write best.toml\n"
        "sextant plan --params 1B",
    .values = kPlanValues,
    .declare = declare_verb<add_plan_options, run_plan>,
};

}  // namespace sextant
