#include "train/run_output.h"

#include <fmt/format.h>

#include <system_error>

#include "base/error.h"
#include "base/printable.h"

namespace sextant {

namespace fs = std::filesystem;

RunOutput::RunOutput(const Parts& parts) : parts_(parts) {
  if (parts_.writes == Writes::yes) events_.emplace(parts_.out, parts_.on_event);
}

void RunOutput::begin(int64_t step) {
  if (parts_.writes == Writes::no) return;
  metrics_.reset();
  metrics_.emplace(parts_.out / "metrics.jsonl", step);
  if (!is_quiet()) progress_.emplace(step + 1, parts_.steps, parts_.lines_every, parts_.lines);
}

void RunOutput::say(const std::string& line) {
  if (progress_)
    progress_->say(line);
  else if (parts_.writes == Writes::yes && !is_quiet())
    fmt::print("{}\n", printable(line, Newlines::kept));
}

void RunOutput::record(const RunEvent& event) {
  if (!events_) return;
  if (std::optional<std::string> warning = events_->record(event)) say(*warning);
}

void RunOutput::step(const StepMetrics& metrics) {
  if (metrics_) metrics_->append(metrics);
  if (progress_) progress_->step(metrics);
}

void RunOutput::require_directory() const {
  if (!metrics_ || metrics_->is_there() || parts_.lock.is_there()) return;
  throw RunError(parts_.out.string(), "was removed or moved while the run was writing there",
                 "what was trained since is lost; the same command begins anew");
}

void RunOutput::require_results(const fs::path& checkpoint) const {
  if (!metrics_) return;
  require_directory();
  if (!metrics_->is_there())
    throw RunError((parts_.out / "metrics.jsonl").string(), "was removed or moved while the run was writing to it");
  std::error_code error;
  if (!checkpoint.empty() && !fs::exists(checkpoint, error) && !error)
    throw RunError(checkpoint.string(), "was removed or moved: the run ends without a checkpoint of its last step");
}

}  // namespace sextant
