#include "train/metrics.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <variant>

#include "base/error.h"
#include "base/files.h"
#include "base/run_file.h"

namespace sextant {

namespace {

// JSON has no NaN: a number that is not finite is left out of the line, and named with what it was in its own field.
class Line {
 public:
  void add(std::string_view name, double x) {
    if (std::isfinite(x))
      json_[std::string(name)] = x;
    else
      non_finite_[std::string(name)] = std::isnan(x) ? "nan" : x > 0 ? "inf" : "-inf";
  }
  void add(std::string_view name, int64_t x) { json_[std::string(name)] = x; }
  void add(std::string_view name, const std::vector<double>& list) { json_[std::string(name)] = list; }
  void add(std::string_view name, const std::vector<int64_t>& list) { json_[std::string(name)] = list; }
  void add(std::string_view name, bool flag) { json_[std::string(name)] = flag; }
  void add(std::string_view name, std::monostate) { json_[std::string(name)] = nullptr; }

  // Adds the numbers that were left out so far.
  void add_non_finite(std::string_view name) {
    if (!non_finite_.empty()) json_[std::string(name)] = non_finite_;
  }

  std::string text() const { return json_.dump(); }

 private:
  nlohmann::ordered_json json_, non_finite_;
};

// By then it is known what was left out of the line.
constexpr MetricField kLastField{.name = "non_finite",
                                 .unit = "",
                                 .when = "steps with a number that is not finite",
                                 .about =
                                     "The fields that are missing from this line for that reason, each with `nan`, "
                                     "`inf` or `-inf`: JSON has no such numbers.",
                                 .label = ""};

void add_number(Line& line, const StepNumber& number, const StepMetrics& m) {
  if (number.about.empty()) return;
  auto add = [&](const StepValue& value) { std::visit([&](const auto& x) { line.add(number.name, x); }, value); };
  if (number.shown) {
    if (std::optional<StepValue> shown = number.shown(number, m)) add(*shown);
  } else if (const StepValue* value = m.values.find(number)) {
    add(*value);
  }
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

std::vector<MetricField> metric_fields() {
  std::vector<MetricField> fields;
  for (const StepNumber* number : step_numbers())
    if (!number->about.empty())
      fields.push_back({number->name, number->unit, number->when, number->about, number->label});
  fields.push_back(kLastField);
  return fields;
}

MetricsFile::MetricsFile(std::filesystem::path path, int64_t resume_step) : path_(std::move(path)) {
  write_file_atomically(path_, kept_lines(path_, resume_step));
  file_ = Descriptor(::open(path_.c_str(), O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC));
  if (!file_.is_open()) throw_disk_error(path_, "cannot open for writing", errno);
}

void MetricsFile::append(const StepMetrics& m) {
  Line line;
  for (const StepNumber* number : step_numbers()) add_number(line, *number, m);
  line.add_non_finite(kLastField.name);
  std::string text = line.text() + "\n";
  if (!write_all(file_.get(), text)) throw_disk_error(path_, "cannot write", errno);
}

}  // namespace sextant
