#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/json_output.h"
#include "app/output.h"
#include "app/run_inputs.h"
#include "app/verb.h"
#include "app/verbosity_options.h"
#include "base/error.h"
#include "base/printable.h"
#include "base/threads.h"
#include "base/verbosity.h"
#include "config/load.h"
#include "sweep/sweep.h"
#include "sweep/sweep_comparison.h"
#include "sweep/sweep_report.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

struct SweepArguments {
  std::string config;
  std::vector<std::string> overrides;  // with lists of values
  std::string out;                     // empty: runs/NAME-sweep
  int64_t jobs = 1;
  int64_t halving = 1;  // of the runs, one in so many goes on; 1: all
  Verbosity verbosity = Verbosity::usual;
  bool json = false;
};

void add_sweep_options(CLI::App& verb, SweepArguments& a) {
  verb.add_option("config", a.config, "the runs' TOML file (docs/config.md lists every key)")->required();
  verb.add_option("values", a.overrides, "key=value,value,... of what is varied, and key=value of what is not")
      ->required();
  verb.add_option("--out", a.out, "directory for the runs [runs/NAME-sweep]");
  verb.add_option("--jobs", a.jobs, "runs at a time; each has its share of the cores")
      ->check(CLI::Range(int64_t{1}, int64_t{1024}))
      ->capture_default_str();
  verb.add_option("--halving", a.halving,
                  "successive halving: only one run in so many goes on, to so many times the steps")
      ->check(CLI::Range(int64_t{2}, int64_t{100}));
  verb.add_flag("--json", a.json, "print the table alone, as JSON");
  add_quiet(verb, a.verbosity, "print the table alone");
}

ExitCode run_sweep(const SweepArguments& a) {
  outlive_standard_output();
  std::vector<SweepRun> runs = sweep_grid(a.overrides);
  // All configs are read before the first run starts: a value that cannot be used ends the sweep here.
  RunConfig first = load_config(a.config, runs.front().overrides);
  for (SweepRun& run : runs) {
    run.steps = load_config(a.config, run.overrides).train.steps;
    if (a.halving > 1 && run.steps != first.train.steps)
      throw UserError({.place = "--halving",
                       .got = fmt::format("runs of {} and of {} steps", first.train.steps, run.steps),
                       .expected = "runs of as many steps, or no --halving"});
  }
  bool quiet = a.json || a.verbosity == Verbosity::quiet;
  SweepResult result = sweep({.binary = fs::read_symlink("/proc/self/exe").string(),
                              .config = a.config,
                              .runs = std::move(runs),
                              .out = run_directory(first, a.config, a.out).string() + (a.out.empty() ? "-sweep" : ""),
                              .jobs = a.jobs,
                              .threads = a.jobs > 1 ? std::max<int64_t>(1, core_count() / a.jobs) : 0,
                              .keep_one_in = a.halving,
                              .say = [&](const std::string& line) {
                                if (!quiet) fmt::print("{}\n", printable(line));
                              }});
  std::vector<RunComparison> comparisons = compare_with_best(result);
  if (a.json) {
    nlohmann::ordered_json json = sweep_json(result);
    json.update(nlohmann::ordered_json::parse(comparison_json(comparisons)));
    print_json(json);
  } else {
    std::string compared = sweep_comparison_text(comparisons);
    fmt::print("{}{}{}{}", quiet ? "" : "\n", sweep_text(result), compared.empty() ? "" : "\n", compared);
  }
  return result.outcome;
}

constexpr ValueFormat kSweepValues[] = {
    {"KEY=VALUES", "key=value,value, such as optimizer.lr=1e-3,3e-3", "values"},
    {"RUNS", "runs", "--jobs"},
    {"FACTOR", "", "--halving"},
};

}  // namespace

const VerbDef sweep_verb{
    .words = "sweep",
    .summary = "Train every combination of some values and rank the runs",
    .details = "Run again to resume",
    .examples = "sextant sweep configs/tiny-llama.toml optimizer.lr=1e-3,3e-3 train.steps=4 --jobs 2",
    .values = kSweepValues,
    .declare = declare_verb<add_sweep_options, run_sweep>,
};

}  // namespace sextant
