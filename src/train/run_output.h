// RunOutput: what a run gives out while it trains: lines for the user, metrics.jsonl, events.jsonl. The leader's; on
// other ranks nothing is written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/verbosity.h"
#include "events/event_log.h"
#include "train/metrics.h"
#include "train/progress.h"
#include "train/save/run_lock.h"

namespace sextant {

class RunOutput {
 public:
  enum class Writes : uint8_t { no, yes };
  struct Parts {
    const std::filesystem::path& out;
    const RunLock& lock;
    const std::string& on_event;  // log.on_event
    int64_t steps, lines_every;   // train.steps; of steps, how often one has a line of its own
    Lines lines;
    Verbosity verbosity;
    Writes writes;
  };
  explicit RunOutput(const Parts& parts);

  // The first step that follows is the one after `step`; what metrics.jsonl has of later steps goes. Again after a
  // rewind.
  void begin(int64_t step);

  void say(const std::string& line);
  void record(const RunEvent& event);
  void step(const StepMetrics& metrics);

  // RunError where the directory was removed or moved: what is written from here on would be lost, or begin another
  // directory of that name.
  void require_directory() const;
  // The same at the end of the run, of its metrics and of `checkpoint`, which may be empty.
  void require_results(const std::filesystem::path& checkpoint) const;

 private:
  bool is_quiet() const { return parts_.verbosity == Verbosity::quiet; }

  Parts parts_;
  std::optional<EventLog> events_;
  std::optional<MetricsFile> metrics_;  // from `begin` on, as the next
  std::optional<Progress> progress_;
};

}  // namespace sextant
