#include "answers/what_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/units.h"
#include "laws/quantity.h"

namespace sextant {

namespace {

constexpr size_t kBarWidth = 20;

// A bar of characters, the longest of all as wide as there is room.
std::string bar_text(double share) {
  auto full = static_cast<size_t>(std::lround(std::clamp(share, 0.0, 1.0) * kBarWidth));
  return std::string(full, '#') + std::string(kBarWidth - full, ' ');
}

WhatIfRow planned_row(const std::string& change, const ChangedQuestion& asked, double tokens) {
  WhatIfRow row{.change = change, .remark = asked.remark, .plan = {}, .why_not = {}};
  asked.place.say(change);
  try {
    row.plan = planned_run({.asked = asked.asked, .place = asked.place, .devices = asked.devices, .tokens = tokens});
  } catch (const UserError& error) {
    row.why_not = error.what();
  }
  return row;
}

std::string text_of_row(const WhatIf& answer, const WhatIfRow& row, double fastest) {
  if (!row.plan) return fmt::format("{:<26}  no plan: {}\n", row.change, row.why_not);
  const PlannedRun& plan = *row.plan;
  const std::optional<Economics>& run = plan.layout.economics;
  auto number = [](const std::optional<double>& value, const std::string& before = "") {
    return value ? before + with_digits(*value, 3) : std::string("-");
  };
  bool first = &row == &answer.rows.front();
  std::string speed = first                                      ? ""
                      : as_fast(plan, *answer.rows.front().plan) ? "equal"
                                                                 : fmt::format("×{:.2f}", *speed_ratio(answer, row));
  return fmt::format("{:<26} {:>10} {:>16} {:>9} {:>7} {:>9} {:>9} {:>9} {:>7}  |{}|\n", row.change,
                     short_seconds(plan.layout.seconds), interval_text(plan), human_quantity(plan.tokens_per_s()),
                     fmt::format("{:.3g} %", 100 * plan.layout.mfu),
                     number(run ? run->days_with_failures : std::nullopt),
                     run && run->cost ? "$" + human_quantity(*run->cost) : "-", number(plan.cost_per_million(), "$"),
                     speed, bar_text(plan.tokens_per_s() / fastest));
}

}  // namespace

WhatIf what_if(const WhatIfQuestion& question) {
  const ChangeableQuestion& base = question.base;
  AskedRun asked = asked_run(base.model, base.overrides, base.devices);
  // All of them, before the first plan takes its time.
  std::vector<ChangedQuestion> changed;
  for (const QuestionChange& change : question.changes) changed.push_back(with_change(base, change));
  WhatIf answer{.tokens = question.tokens, .rows = {}};
  base.place.say("as asked");
  WhatIfRow& first = answer.rows.emplace_back();
  first.change = "as asked";
  first.plan = planned_run({.asked = asked, .place = base.place, .devices = base.devices, .tokens = question.tokens});
  for (size_t i = 0; i < changed.size(); ++i)
    answer.rows.push_back(planned_row(question.changes[i].text(), changed[i], question.tokens));
  return answer;
}

std::optional<double> speed_ratio(const WhatIf& answer, const WhatIfRow& row) {
  if (!row.plan) return std::nullopt;
  return row.plan->tokens_per_s() / answer.rows.front().plan->tokens_per_s();
}

std::optional<double> cost_ratio(const WhatIf& answer, const WhatIfRow& row) {
  if (!row.plan) return std::nullopt;
  std::optional<double> now = row.plan->cost_per_million(), before = answer.rows.front().plan->cost_per_million();
  return now && before ? std::optional(*now / *before) : std::nullopt;
}

std::string what_if_text(const WhatIf& answer) {
  const PlannedRun& first = *answer.rows.front().plan;
  double fastest = 0;
  for (const WhatIfRow& row : answer.rows)
    if (row.plan) fastest = std::max(fastest, row.plan->tokens_per_s());
  std::string text = fmt::format("{} on {} × {} ({}), {} tokens\n\n", first.model, first.devices, first.device,
                                 first.machine, human_quantity(answer.tokens)) +
                     fmt::format("{:<26} {:>10} {:>16} {:>9} {:>7} {:>9} {:>9} {:>9} {:>7}  {}\n", "", "step",
                                 "80 % interval", "tokens/s", "MFU", "days", "cost", "per 1M", "speed", "tokens/s");
  for (const WhatIfRow& row : answer.rows) text += text_of_row(answer, row, fastest);
  text += "\nequal: the difference is smaller than predictions are known\n\nlayouts, behind the config\n";
  for (const WhatIfRow& row : answer.rows)
    if (row.plan)
      text += fmt::format("  {}: {}{}\n", row.change, row.plan->layout.overrides,
                          row.remark.empty() ? "" : fmt::format(" ({})", row.remark));
  return text;
}

nlohmann::ordered_json what_if_json(const WhatIf& answer) {
  using Json = nlohmann::ordered_json;
  auto maybe = [](const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); };
  Json json{{"tokens", answer.tokens}, {"rows", Json::array()}};
  for (const WhatIfRow& row : answer.rows)
    json["rows"].push_back(
        {{"change", row.change},
         {"remark", row.remark},
         {"plan", row.plan ? json_of(*row.plan) : Json(nullptr)},
         {"why_not", row.plan ? Json(nullptr) : Json(row.why_not)},
         {"speed_ratio", maybe(speed_ratio(answer, row))},
         {"cost_ratio", maybe(cost_ratio(answer, row))},
         {"equals_first", row.plan ? Json(as_fast(*row.plan, *answer.rows.front().plan)) : Json(nullptr)}});
  return json;
}

}  // namespace sextant
