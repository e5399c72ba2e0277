#include "train/metrics.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "base/files.h"

namespace sextant {

namespace {

// JSON has no NaN: a number that is not finite is left out of the line, and named with what it was in its own field.
class Line {
 public:
  void add(const char* name, double x) {
    if (std::isfinite(x))
      json_[name] = x;
    else
      non_finite_[name] = std::isnan(x) ? "nan" : x > 0 ? "inf" : "-inf";
  }
  void add(const char* name, int64_t x) { json_[name] = x; }
  void add(const char* name, const std::vector<int64_t>& list) { json_[name] = list; }
  void add_flag(const char* name) { json_[name] = true; }
  void add_unknown(const char* name) { json_[name] = nullptr; }

  std::string text() {
    if (!non_finite_.empty()) json_["non_finite"] = non_finite_;
    return json_.dump();
  }

 private:
  nlohmann::ordered_json json_, non_finite_;
};

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
  Line line;
  line.add("step", m.step);
  line.add("loss", m.loss);
  if (m.balance_loss) line.add("balance_loss", *m.balance_loss);
  line.add("grad_norm", m.grad_norm);
  line.add("lr", m.lr);
  line.add("tokens", m.tokens);
  line.add("tokens_per_s", m.tokens_per_s);
  line.add("step_s", m.step_s);
  m.mfu ? line.add("mfu", *m.mfu) : line.add_unknown("mfu");
  line.add("arena_bytes", m.arena_bytes);
  if (!m.arena_bytes_by_rank.empty()) line.add("arena_bytes_by_rank", m.arena_bytes_by_rank);
  if (m.validation_loss) line.add("validation_loss", *m.validation_loss);
  if (auto perplexity = m.perplexity()) line.add("perplexity", *perplexity);
  if (m.bits_per_byte) line.add("bits_per_byte", *m.bits_per_byte);
  if (m.is_update_skipped()) line.add_flag("update_skipped");
  file_ << line.text() << std::endl;
  if (!file_) throw RunError(path_.string(), "cannot write", "is the disk full?");
}

}  // namespace sextant
