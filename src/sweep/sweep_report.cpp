#include "sweep/sweep_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace sextant {

namespace {

std::string number_text(const std::optional<double>& value, int digits) {
  return value ? fmt::format("{:.{}f}", *value, digits) : "-";
}

// The best, where one is.
const SweptRun* best_of(const SweepResult& result) {
  if (result.runs.empty() || !result.ranked_by.measure || result.runs.front().state != SweepState::finished)
    return nullptr;
  return &result.runs.front();
}

}  // namespace

std::string sweep_text(const SweepResult& result) {
  LossMeasure shown = result.ranked_by.measure == LossMeasure::bits_per_byte ? LossMeasure::bits_per_byte
                                                                             : LossMeasure::validation_loss;
  size_t width = 4;
  for (const SweptRun& run : result.runs) width = std::max(width, run.run.name.size());
  std::string text = fmt::format("{:{}}  {:>9}  {:>9}  {:>10}  {:>10}  {}\n", "run", width, "steps", "loss",
                                 shown == LossMeasure::bits_per_byte ? "bits/byte" : "validation", "tokens/s", "state");
  for (const SweptRun& run : result.runs)
    text += fmt::format("{:{}}  {:>9}  {:>9}  {:>10}  {:>10}  {}\n", run.run.name, width, run.score.steps,
                        number_text(run.score.loss, 4), number_text(run.score.in(shown), 4),
                        number_text(run.score.tokens_per_s, 0), name_of(run.state));
  if (const SweptRun* best = best_of(result))
    text +=
        fmt::format("best by {}: {} ({})\n", words_of(*result.ranked_by.measure), best->run.name, best->out.string());
  if (!result.ranked_by.why.empty())
    text += fmt::format("{}: {}\n", result.ranked_by.measure ? "not by loss" : "none is best", result.ranked_by.why);
  return text;
}

nlohmann::ordered_json sweep_json(const SweepResult& result) {
  using Json = nlohmann::ordered_json;
  auto number = [](const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); };
  Json runs = Json::array();
  for (const SweptRun& run : result.runs)
    runs.push_back({{"run", run.run.name},
                    {"overrides", run.run.overrides},
                    {"directory", run.out.string()},
                    {"state", name_of(run.state)},
                    {"exit_code", run.exit_code},
                    {"steps", run.score.steps},
                    {"loss", number(run.score.loss)},
                    {"validation_loss", number(run.score.validation_loss)},
                    {"bits_per_byte", number(run.score.bits_per_byte)},
                    {"tokens_per_s", number(run.score.tokens_per_s)}});
  const SweptRun* best = best_of(result);
  return {{"best", best ? Json(best->run.name) : Json(nullptr)},
          {"ranked_by", result.ranked_by.measure ? Json(field_of(*result.ranked_by.measure)) : Json(nullptr)},
          {"why", result.ranked_by.why},
          {"runs", std::move(runs)}};
}

}  // namespace sextant
