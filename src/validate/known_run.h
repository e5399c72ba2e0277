// KnownRun: a training run that everybody knows, as a config of configs/published with what was measured. The list is
// data/known_runs.toml: a table for each config, by the config's name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/run_config.h"
#include "cost/machine.h"
#include "cost/software_profile.h"
#include "models/spec.h"
#include "plan/prediction_interval.h"

namespace sextant {

// The operations that a published FLOP/s rate counts.
enum class CountedFlops : uint8_t {
  causal,    // of the model, attention to keys up to a query's own
  full,      // of the model, attention to all keys
  executed,  // and what is computed again
};

struct KnownRun {
  std::string name;                       // of the config, without ".toml", unless `like` says another
  std::string like;                       // the run whose config this one has, but for its overrides; empty: its own
  std::vector<std::string> overrides;     // "batch.sequences=256"
  std::string after;                      // the run to which this one adds something: the rung of a ladder before it
  std::filesystem::path config;           //
  std::string about;                      // "Llama 3 405B, 8,192 tokens"
  std::string source;                     // where it was published
  std::string date;                       // "2024-07"
  std::string known;                      // "read" in the source, or "recalled"
  std::string machine, software;          // what it ran on, by our names
  std::string assumed;                    // what the source does not say, and the config does
  std::optional<double> step_s;           // measured, as is one of the next two where the source has no time
  std::optional<double> tflops;           // of each device
  std::optional<double> tokens_s;         // of each device
  std::optional<double> utilisation;      // of the device's dense peak
  std::optional<double> flops_per_token;  // that the rates count, where the source tells; else as `counted` says
  CountedFlops counted = CountedFlops::causal;
};

// UserError with places for what is wrong with the list, or with a config that it has and that is not there.
std::vector<KnownRun> parse_known_runs(std::string_view text, const std::filesystem::path& place,
                                       const std::filesystem::path& configs);
// Stands for all of them, wherever the beginning of a name may be given.
inline constexpr std::string_view kAllKnownRuns = "all";

// Those that come with the program and whose names begin so; UserError where there are none.
std::vector<KnownRun> read_known_runs(std::string_view begin = kAllKnownRuns);

// A known run with the config, model, profile and machine that it is planned with.
struct LoadedKnownRun {
  RunConfig config;
  ModelSpec spec;
  SoftwareProfile profile;
  Machine machine;
};
LoadedKnownRun load_known_run(const KnownRun& known, const std::vector<SoftwareProfile>& profiles);

struct KnownRunResult {
  KnownRun run;
  int64_t devices = 0;
  double measured_s = 0;
  double tables_s = 0, fitted_s = 0;  // predicted by published tables alone, and with what was fitted
  double tflops_per_device = 0;       // of the fitted prediction, as the source counts
  double measured_tflops = 0;
  double peak_tflops = 0;       // of a device
  PredictionInterval interval;  // of fitted_s

  double tables_error() const { return tables_s / measured_s - 1; }
  double fitted_error() const { return fitted_s / measured_s - 1; }
  // Of the peak, in percent, of a step that takes so long.
  double utilisation(double seconds) const { return 100 * measured_tflops / peak_tflops * measured_s / seconds; }
  bool inside() const;
};

std::vector<KnownRunResult> plan_known_runs(std::vector<KnownRun> runs, const IntervalModel& intervals);

// Utilisation that each rung adds, in points: measured, and predicted by both efficiencies.
struct KnownRung {
  const KnownRunResult *before, *run;
  double measured = 0, tables = 0, fitted = 0;
};
// Of the runs that say `after`, where that one is among the results too.
std::vector<KnownRung> known_rungs(const std::vector<KnownRunResult>& results);

std::string known_runs_text(const std::vector<KnownRunResult>& results);
std::string known_runs_json(const std::vector<KnownRunResult>& results);

}  // namespace sextant
