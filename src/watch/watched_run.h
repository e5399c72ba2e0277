// A run's directory, followed while the run goes on: its metrics as columns, its events, and how it stands.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "watch/kept_events.h"
#include "watch/line_tail.h"
#include "watch/op_comparison.h"
#include "watch/run_columns.h"

namespace sextant {

inline constexpr std::string_view kMetricsFile = "metrics.jsonl";

enum class WatchedState : uint8_t { waiting, running, silent, finished, stopped, failed };
std::string_view name_of(WatchedState state);

// A directory that holds metrics or events.
bool is_run_directory(const std::filesystem::path& directory);

class WatchedRun {
 public:
  WatchedRun(int id, std::filesystem::path directory, std::string name);

  int id() const { return id_; }
  const std::string& name() const { return name_; }
  const std::filesystem::path& directory() const { return directory_; }
  // All that was read; of a large file that is still being read for the first time, a sample of all of it.
  const RunColumns& columns() const { return sample_.rows() > 0 ? sample_ : columns_; }
  const std::vector<RunEvent>& events() const { return events_.all(); }
  const KeptEvents& kept_events() const { return events_; }
  const std::optional<PlannedStep>& plan() const { return plan_; }  // of plan.json
  bool is_loading() const { return metrics_.has_more() || event_lines_.has_more(); }
  // A run without an end is running while lines come, and silent when none has come for long.
  WatchedState state(int64_t now) const;
  int64_t modified() const { return std::max(metrics_.modified(), event_lines_.modified()); }

  // Takes a sample of a large file, in a moment, so that there is something to show before all of it is read.
  void take_sample();

  // Reads what is new, at most about `budget` bytes. True where anything changed.
  bool poll(size_t budget);

 private:
  int id_;
  std::filesystem::path directory_;
  std::string name_;
  LineTail metrics_, event_lines_, plan_line_;
  RunColumns columns_, sample_;
  KeptEvents events_;
  std::optional<PlannedStep> plan_;
};

}  // namespace sextant
