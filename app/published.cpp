// `sextant published`: well-known training runs, measured beside predicted.
#include <fmt/format.h>

#include "app/common_options.h"
#include "app/given_options.h"
#include "app/verb.h"
#include "app/verbosity_options.h"
#include "validate/known_run.h"
#include "validate/known_run_search.h"

namespace sextant {

namespace {

struct PublishedArguments {
  std::string name{kAllKnownRuns};  // how names of configs of configs/published begin
  bool search = false;
  std::vector<std::string> only;  // "zero=0,1"
  bool json = false;
  Verbosity verbosity = Verbosity::usual;
};

void add_published_options(CLI::App& verb, PublishedArguments& a) {
  verb.add_option("name", a.name, "the runs of configs/published whose names begin so")->capture_default_str();
  CLI::Option* search = verb.add_flag("--search", a.search, "find the fastest layout, beside the run's own");
  add_only(verb, a.only)->needs(search);
  verb.add_flag("--json", a.json, "print JSON");
  add_quiet(verb, a.verbosity, "no progress of --search on standard error");
}

void search_published(const PublishedArguments& a, const std::vector<KnownRun>& runs) {
  IntervalModel intervals = load_interval_model();
  std::vector<KnownRunSearch> results = search_known_runs({.runs = runs,
                                                           .intervals = intervals,
                                                           .limits = LayoutLimits(a.only, "--only"),
                                                           .progress = [&](std::string_view run) {
                                                             if (!a.json && a.verbosity != Verbosity::quiet)
                                                               fmt::print(stderr, "{}\n", run);
                                                           }});
  fmt::print("{}", a.json ? known_run_searches_json(results) : known_run_searches_text(results));
}

void run_published(const PublishedArguments& a, VerbContext& context) {
  require_values(*context.verb);
  std::vector<KnownRun> runs = read_known_runs(a.name);
  if (a.search) return search_published(a, runs);
  std::vector<KnownRunResult> results = plan_known_runs(runs, load_interval_model());
  fmt::print("{}", a.json ? known_runs_json(results) : known_runs_text(results));
}

constexpr ValueFormat kPublishedValues[] = {
    {"NAME", "the name of a published run (sextant published lists them)", "name"},
};

}  // namespace

const VerbDef published_verb{
    .words = "published",
    .summary = "Predictions of known runs beside what was measured",
    .details = "The runs are configs of configs/published",
    .examples = "sextant published megatron-2021",
    .values = kPublishedValues,
    .declare = declare_verb<add_published_options, run_published>,
};

}  // namespace sextant
