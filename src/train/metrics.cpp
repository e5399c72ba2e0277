#include "train/metrics.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "base/files.h"

namespace sextant {

namespace {

// JSON has no NaN: a number that is not finite is written as null.
nlohmann::ordered_json number(std::optional<double> x) {
  return x && std::isfinite(*x) ? nlohmann::ordered_json(*x) : nlohmann::ordered_json(nullptr);
}

std::string kept_lines(const std::filesystem::path& path, int64_t resume_step) {
  std::string kept;
  if (resume_step == 0 || !std::filesystem::exists(path)) return kept;
  std::istringstream lines(read_file(path));
  for (std::string line; std::getline(lines, line);) {
    auto json = nlohmann::json::parse(line, nullptr, false);
    // A line cut off by a crash does not parse, and belongs to a step that was not saved.
    if (json.is_object() && json.contains("step") && json["step"].is_number_integer() && json["step"] <= resume_step)
      kept += line + "\n";
  }
  return kept;
}

}  // namespace

MetricsFile::MetricsFile(std::filesystem::path path, int64_t resume_step) : path_(std::move(path)) {
  write_file_atomically(path_, kept_lines(path_, resume_step));
  file_.open(path_, std::ios::app);
  if (!file_) throw RunError(path_.string(), "cannot open for writing");
}

void MetricsFile::append(const StepMetrics& m) {
  nlohmann::ordered_json line{{"step", m.step},       {"loss", number(m.loss)},
                              {"grad_norm", number(m.grad_norm)}, {"lr", m.lr},
                              {"tokens", m.tokens},   {"tokens_per_s", number(m.tokens_per_s)},
                              {"step_s", m.step_s},   {"mfu", number(m.mfu)},
                              {"arena_bytes", m.arena_bytes}};
  if (m.validation_loss) line["validation_loss"] = number(m.validation_loss);
  file_ << line.dump() << std::endl;
  if (!file_) throw RunError(path_.string(), "cannot write", "is the disk full?");
}

}  // namespace sextant
