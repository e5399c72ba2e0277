#include "plan/expert_imbalance.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "base/files.h"

namespace sextant {

namespace {

constexpr std::string_view kLoadPeak = "expert_load_peak";

// The mean over layers in the last step that has them. It is of experts: of ranks, which have several, it is less.
double measured_ratio(const std::string& file, const std::string& place) {
  std::istringstream lines(read_file(file));
  double ratio = 0;
  for (std::string line; std::getline(lines, line);) {
    nlohmann::json step = nlohmann::json::parse(line, nullptr, false);
    if (!step.is_object() || !step.contains(kLoadPeak) || !step[kLoadPeak].is_array()) continue;
    double sum = 0, layers = 0;
    for (const nlohmann::json& peak : step[kLoadPeak])
      if (peak.is_number()) sum += peak.get<double>(), layers += 1;
    if (layers > 0) ratio = sum / layers;
  }
  if (ratio < 1)
    throw UserError({.place = place,
                     .got = fmt::format("{} has no {}", file, kLoadPeak),
                     .expected = "the metrics.jsonl of a run of a model with experts"});
  return ratio;
}

}  // namespace

ExpertImbalance read_expert_imbalance(const std::string& text, const std::string& place) {
  if (text.empty() || text == "balanced") return {};
  double ratio = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ratio);
  if (error == std::errc{} && end == text.data() + text.size()) {
    if (ratio < 1 || ratio > 1e4)
      throw UserError({.place = place, .got = text, .expected = "a ratio of the busiest rank to the mean, from 1 on"});
    return {ratio, fmt::format("the busiest rank gets {:.4g} times the mean", ratio)};
  }
  if (!std::filesystem::exists(text))
    throw UserError({.place = place,
                     .got = fmt::format("'{}'", text),
                     .expected = "balanced, a ratio such as 1.3, or a run's metrics.jsonl"});
  ratio = measured_ratio(text, place);
  return {ratio,
          fmt::format("the busiest expert got {:.4g} times the mean in {}, and so does its rank at most", ratio, text)};
}

}  // namespace sextant
