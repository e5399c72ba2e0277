#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/json_output.h"
#include "app/output.h"
#include "app/run_inputs.h"
#include "app/verbs.h"
#include "base/error.h"
#include "base/printable.h"
#include "base/threads.h"
#include "config/load.h"
#include "sweep/sweep.h"
#include "sweep/sweep_comparison.h"
#include "sweep/sweep_report.h"

namespace sextant {

namespace fs = std::filesystem;

ExitCode sweep_verb(const SweepArguments& a) {
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

}  // namespace sextant
