// `sextant compare`: runs beside the first of them.
#include <nlohmann/json.hpp>

#include "app/json_output.h"
#include "app/verb.h"
#include "base/error.h"
#include "base/printable.h"
#include "watch/run_comparison.h"
#include "watch/run_set.h"

namespace sextant {

namespace {

struct CompareArguments {
  std::vector<std::string> directories;
  int64_t window = 0;  // steps; 0: by the length of the runs
  bool json = false;
};

void add_compare_options(CLI::App& verb, CompareArguments& a) {
  verb.add_option("directories", a.directories, "runs (train --out); all others are compared with the first")
      ->required()
      ->expected(2, 100);
  verb.add_option("--window", a.window,
                  "steps that a loss is the mean of [a twentieth of the shorter run, 20 to 1000, no more than half]")
      ->check(CLI::Range(8, 1'000'000));
  verb.add_flag("--json", a.json, "print JSON");
}

void run_compare(const CompareArguments& a) {
  std::vector<RunSet> sets;
  for (const std::string& directory : a.directories) {
    RunSet& set = sets.emplace_back(std::vector<std::filesystem::path>{directory});
    set.read_all();
    if (set.runs().size() != 1)
      throw UserError({.place = printable(directory),
                       .got = set.runs().empty() ? "not a run's directory" : "a folder of several runs",
                       .expected = "the directory of one run (train --out)"});
  }
  std::vector<const WatchedRun*> runs;
  for (const RunSet& set : sets) runs.push_back(set.runs().front().get());
  std::vector<RunComparison> comparisons = compare_with_first(runs, static_cast<size_t>(a.window));
  if (a.json) return print_json(nlohmann::ordered_json::parse(comparison_json(comparisons)));
  fmt::print("{}", comparison_text(comparisons));
}

constexpr ValueFormat kCompareValues[] = {
    {"STEPS", "steps", "--window"},
};

}  // namespace

const VerbDef compare_verb{
    .words = "compare",
    .summary = "Compare runs: is one better than another",
    .details = "Configs, losses at equal tokens with their noise, time to a loss",
    .examples = "sextant compare runs/longer runs/two-ranks",
    .values = kCompareValues,
    .declare = declare_verb<add_compare_options, run_compare>,
};

}  // namespace sextant
