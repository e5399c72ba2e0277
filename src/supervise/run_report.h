// RunReport: what a supervised run came to: attempts and their causes, steps done twice, time lost, goodput.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "config/run_config.h"
#include "supervise/attempt.h"

namespace sextant {

struct RunReport {
  ExitCode outcome = ExitCode::finished;
  std::string why = {};  // it was given up or stopped; empty when it finished
  std::vector<Attempt> attempts = {};
  int64_t first_step = 0, last_step = 0;  // steps done before and after
  int64_t steps_repeated = 0;
  double seconds = 0;              // of all attempts and what lies between them
  double productive_seconds = 0;   // in steps that count
  LostSeconds lost = {};           // by interruptions
  double first_start_seconds = 0;  // until the first step of the first attempt
  double end_seconds = 0;          // after the last step, where the run finished

  int64_t failures() const;
  int64_t interruptions() const;      // failures of attempts that had come to train, and had not saved and stopped
  double asked_stop_seconds() const;  // lost by those that had: no work is undone
  // In neither steps that count nor restarts nor the first start: saves, evaluations, steps done again, the end.
  double other_seconds() const;
  double goodput() const { return seconds > 0 ? productive_seconds / seconds : 0; }
  // Goodput that `plan` predicts for the same number of interruptions in the same training time. Steps, saves and
  // interruptions last as long as they did on average; the first start and the end are the same. The work that
  // interruptions undo is the expectation of the model, not measured. nullopt without interruptions or steps.
  std::optional<double> predicted_goodput(const RunConfig& run) const;
};

// Of metrics.jsonl: the last step in it (0: none), and the seconds of all steps after `after`.
int64_t last_metrics_step(const std::filesystem::path& out);
double productive_seconds(const std::filesystem::path& out, int64_t after);

// When the last step in `out` ended, or the checkpoint behind it that held up the next; nothing where there is none.
std::optional<WallTime> last_step_time(const std::filesystem::path& out);
std::optional<WallTime> last_progress(const std::filesystem::path& out, const RunConfig& run);

std::string report_text(const RunReport& report, const RunConfig& run);
nlohmann::ordered_json report_json(const RunReport& report, const RunConfig& run);
nlohmann::ordered_json lost_json(const LostSeconds& lost);

}  // namespace sextant
