// Cost of a token and of a point of loss: a real plan of the run, and the loss that a scaling law forecasts for token
// budgets around the requested one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "answers/planned_run.h"
#include "laws/chinchilla.h"

namespace sextant {

// Nats per token. Differences of a hundredth are what ablations are decided by.
inline constexpr double kPointOfLoss = 0.01;

struct LossCostRow {
  double tokens = 0;
  double loss = 0;                   // nats per token, by the law
  std::optional<double> days, cost;  // of the run, with failures and checkpoints
  std::optional<double> next_point;  // dollars for the next point, by more tokens for the same model
};

struct LossCost {
  PlannedRun plan;
  ParametricLaw law;
  double params = 0;  // that the law counts
  bool experts = false;
  std::vector<LossCostRow> rows;  // fewest tokens first; the budget asked for is one of them
  Optimum same_loss;              // the least compute that reaches the loss of the budget asked for
  double tokens = 0;

  const LossCostRow& asked() const;
  double compute_over_optimum() const;  // 6·N·D of the run over that of same_loss
};

struct LossCostQuestion {
  const AskedRun& asked;
  const AskedPlace& place;
  int64_t devices = 1;
  double tokens = 0;
  ParametricLaw law;
};

LossCost loss_cost(const LossCostQuestion& question);

// Tokens until the law's loss is lower by `points`; none when it never is.
std::optional<double> tokens_for_points(const ParametricLaw& law, double tokens, double points);

std::string loss_cost_text(const LossCost& answer);
nlohmann::ordered_json loss_cost_json(const LossCost& answer);

}  // namespace sextant
