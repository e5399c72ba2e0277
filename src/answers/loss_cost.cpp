#include "answers/loss_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "laws/quantity.h"

namespace sextant {

namespace {

constexpr std::array kBudgets{0.25, 0.5, 1.0, 2.0, 4.0};  // of the tokens asked for

Economics with_budget(const PlannedRun& plan, double tokens) {
  RunEconomicsInput run = plan.layout.economics->run;
  run.token_budget = tokens;
  return economics_of(run);
}

LossCostRow row_of_budget(const LossCost& answer, double tokens) {
  Economics run = with_budget(answer.plan, tokens);
  LossCostRow row{.tokens = tokens,
                  .loss = answer.law.loss(answer.params, tokens),
                  .days = run.days_with_failures,
                  .cost = run.cost,
                  .next_point = {}};
  std::optional<double> until = tokens_for_points(answer.law, tokens, kPointOfLoss);
  if (until && run.cost)
    if (std::optional<double> more = with_budget(answer.plan, *until).cost) row.next_point = *more - *run.cost;
  return row;
}

}  // namespace

std::optional<double> tokens_for_points(const ParametricLaw& law, double tokens, double points) {
  // Of E + A/N^alpha + B/D^beta only the last part changes.
  const LawConstants& c = law.constants;
  double rest = c.B / std::pow(tokens, c.beta) - points;
  if (rest <= 0) return std::nullopt;
  return std::pow(c.B / rest, 1 / c.beta);
}

const LossCostRow& LossCost::asked() const {
  auto row = std::ranges::find(rows, tokens, &LossCostRow::tokens);
  BUG_IF(row == rows.end(), "the budget asked for is not among the rows");
  return *row;
}

double LossCost::compute_over_optimum() const {
  return 6 * params * tokens / same_loss.compute();
}

LossCost loss_cost(const LossCostQuestion& q) {
  std::optional<PlannedRun> plan =
      planned_run({.asked = q.asked, .place = q.place, .devices = q.devices, .tokens = q.tokens});
  BUG_IF(!plan, "a search without a limit of time found layouts that fit and none of them");
  LossCost answer{.plan = std::move(*plan),
                  .law = q.law,
                  .params = static_cast<double>(q.asked.active),
                  .experts = q.asked.spec.experts.has_value(),
                  .rows = {},
                  .same_loss = {},
                  .tokens = q.tokens};
  for (double share : kBudgets) answer.rows.push_back(row_of_budget(answer, share * q.tokens));
  answer.same_loss = answer.law.optimum_for_loss(answer.asked().loss);
  return answer;
}

std::string loss_cost_text(const LossCost& answer) {
  const PlannedRun& plan = answer.plan;
  std::string text = fmt::format("{} on {} × {} ({})\n\n{}\nloss by {} ({})\n", plan.model, plan.devices, plan.device,
                                 plan.machine, text_of(plan), answer.law.name, answer.law.source);
  if (answer.experts)
    text += fmt::format("  the law is of dense models: it is given the {} parameters that a token uses\n",
                        human_quantity(answer.params));
  text += fmt::format("{:>10} {:>8} {:>10} {:>10} {:>16}\n", "tokens", "loss", "days", "cost", "next 0.01 nats");
  auto money = [](const std::optional<double>& value) {
    return value ? "$" + human_quantity(*value) : std::string("-");
  };
  for (const LossCostRow& row : answer.rows)
    text += fmt::format("{:>10} {:>8.4f} {:>10} {:>10} {:>16}{}\n", human_quantity(row.tokens), row.loss,
                        row.days ? with_digits(*row.days, 3) : "-", money(row.cost), money(row.next_point),
                        row.tokens == answer.tokens ? "  <" : "");
  return text +
         fmt::format(
             "\nthe same loss for the least compute: {} parameters on {} tokens; this run takes {:.3g} times as much\n",
             human_quantity(answer.same_loss.params), human_quantity(answer.same_loss.tokens),
             answer.compute_over_optimum());
}

nlohmann::ordered_json loss_cost_json(const LossCost& answer) {
  using Json = nlohmann::ordered_json;
  auto maybe = [](const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); };
  Json json{{"plan", json_of(answer.plan)},
            {"law", {{"name", answer.law.name}, {"source", answer.law.source}}},
            {"params", answer.params},
            {"point", kPointOfLoss},
            {"tokens", answer.tokens},
            {"budgets", Json::array()},
            {"same_loss",
             {{"params", answer.same_loss.params},
              {"tokens", answer.same_loss.tokens},
              {"compute_over_optimum", answer.compute_over_optimum()}}}};
  for (const LossCostRow& row : answer.rows)
    json["budgets"].push_back({{"tokens", row.tokens},
                               {"loss", row.loss},
                               {"days", maybe(row.days)},
                               {"cost", maybe(row.cost)},
                               {"next_point_cost", maybe(row.next_point)}});
  return json;
}

}  // namespace sextant
