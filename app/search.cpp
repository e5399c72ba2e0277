// `sextant search`: the fastest layouts of a run that fit.
#include "search/search.h"

#include <fmt/format.h>

#include <filesystem>

#include "app/common_options.h"
#include "app/given_options.h"
#include "app/output_file.h"
#include "app/page_origin.h"
#include "app/planned_target.h"
#include "app/report_file.h"
#include "app/verb.h"
#include "app/verbosity_options.h"
#include "base/error.h"
#include "comm/transport.h"
#include "config/load.h"
#include "plan/expert_imbalance.h"
#include "plan/headroom.h"
#include "run/programs.h"
#include "run/resolve_spec.h"
#include "search/layout_overrides.h"
#include "view/pages/search_html.h"

namespace sextant {

namespace {

struct SearchArguments {
  std::string config;
  std::vector<std::string> overrides;
  bool json = false;
  TargetOptions target;
  std::string html;  // a file to write
  std::string imbalance;
  std::vector<std::string> only;  // "zero=0,1"
  int64_t devices = 0;            // 0: as many as the config's mesh has
  std::string headroom;           // "5%"; empty: by what is known of the software's memory
  std::string tokens;             // the budget of the run
  std::string write;              // a TOML file for the config with the layout that was found best
  Verbosity verbosity = Verbosity::usual;
};

void add_search_options(CLI::App& verb, SearchArguments& a) {
  add_config(verb, a.config, a.overrides);
  verb.add_flag("--json", a.json, "print JSON");
  add_target_options(verb, a.target)->required();
  add_quiet(verb, a.verbosity, "no progress on standard error, and no list of files written");
  verb.add_option("--devices", a.devices, "how many it may use [as many as the config's mesh]")
      ->check(CLI::Range(int64_t{1}, kMaxRanks));
  add_only(verb, a.only);
  verb.add_option("--headroom", a.headroom,
                  "share of the device's memory that layouts leave free, such as 5% [as much as published runs with "
                  "the software took beyond their estimates; docs/planning.md]");
  verb.add_option("--tokens", a.tokens, "tokens to train on: days and cost of each layout");
  add_imbalance(verb, a.imbalance);
  verb.add_option("--html", a.html, "write the search as one HTML file")->check(output_file("--html"));
  verb.add_option("--write", a.write, "write the config with the fastest layout to this TOML file")
      ->check(output_file("--write"));
}

void require_other_file(const SearchArguments& a) {
  std::error_code none;
  if (!a.write.empty() && std::filesystem::equivalent(a.write, a.config, none))
    throw UserError(
        {.place = "--write " + a.write, .got = "it is the config that search reads", .expected = "another file"});
}

void require_experts(const SearchArguments& a, const ModelSpec& spec) {
  if (a.imbalance.empty() || spec.experts) return;
  throw UserError({.place = "--imbalance",
                   .got = fmt::format("{} has no experts", spec.architecture),
                   .expected = "a model with experts"});
}

std::string toml_of(const Candidate& best, const RunConfig& run, int64_t devices, const SearchResult& result) {
  return layout_toml(best.config, fmt::format("The fastest layout of {} on {} × {} ({}) by sextant search.", run.source,
                                              devices, result.device, result.machine));
}

void run_search(const SearchArguments& a, VerbContext& context) {
  require_values(*context.verb);
  RunConfig run = load_config(a.config, a.overrides);
  ModelSpec spec = resolve_spec(run);
  PlannedTarget place = planned_target(a.target, spec);
  require_other_file(a);
  require_experts(a, spec);
  std::optional<double> headroom;
  if (!a.headroom.empty()) headroom = parse_headroom(a.headroom, "--headroom");
  int64_t devices = a.devices > 0 ? a.devices : run_shape(run, spec).mesh.world_size();
  Target target = target_at(place, run, static_cast<int>(devices));
  IntervalModel intervals = load_interval_model();
  FileRemarks remarks = file_remarks(a);
  SearchResult result = search_layouts({.run = run,
                                        .spec = spec,
                                        .machine = *place.machine,
                                        .profile = place.profile,
                                        .devices = devices,
                                        .limits = LayoutLimits(a.only, "--only"),
                                        .target = &target,
                                        .token_budget = given_quantity(a.tokens, "--tokens").value_or(0),
                                        .imbalance = read_expert_imbalance(a.imbalance, "--imbalance"),
                                        .intervals = &intervals,
                                        .headroom = headroom,
                                        .progress = [&](std::string_view text) {
                                          if (remarks == FileRemarks::on) fmt::print(stderr, "{}\n", text);
                                        }});
  fmt::print("{}", a.json ? search_json(result) : search_text(result));
  if (!a.html.empty())
    write_report(a.html, search_html(result, page_origin(model_name(run, spec), a.config, context.command)), remarks);
  if (!a.write.empty()) write_report(a.write, toml_of(result.best.front(), run, devices, result), remarks);
}

constexpr ValueFormat kSearchValues[] = {
    {"SHARE", "a percentage, such as 5%", "--headroom"},
};

}  // namespace

const VerbDef search_verb{
    .words = "search",
    .summary = "Find the fastest layouts of a run that fit",
    .details = "It tries every combination of the mesh's axes, schedules and recompute for a number of devices",
    .examples = "sextant search configs/tiny-llama.toml --machine h100-sxm --devices 4 --write best.toml",
    .values = kSearchValues,
    .declare = declare_verb<add_search_options, run_search>,
};

}  // namespace sextant
