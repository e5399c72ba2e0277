// Forecasts of the scaling laws for a budget: model size, tokens and loss by every law side by side; the cost of a
// smaller model trained longer; the changes when serving is counted. One law, the user's own fit where there is one and
// Besiroglu's otherwise, answers the last two.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "laws/fit.h"
#include "laws/laws.h"
#include "laws/lifetime.h"
#include "laws/undersized_tradeoff.h"

namespace sextant {

// One of compute, tokens and params; or params and tokens, a run that is already decided; or none, with runs to fit.
struct LawsRequest {
  std::optional<double> compute, tokens, params;
  double inference_tokens = 0;  // over the model's life
  std::string fit_csv;          // a file of the user's runs; empty: none

  bool sized() const { return compute || tokens || params; }
  bool decided() const { return params && tokens; }
};

struct LawRow {
  Law law;
  Optimum optimum;                     // at the compute, or for the tokens or parameters, of the request
  std::optional<double> decided_loss;  // of the run that is already decided
};

struct LawsReport {
  LawsRequest request;
  std::vector<LawRow> rows;  // none when there is only a fit
  std::optional<LawFit> fit;
  ParametricLaw law;  // that answers what follows
  Optimum optimum;    // its own
  std::vector<UndersizedTradeoff> smaller;
  std::optional<LifetimeComparison> lifetime;
};

// UserError for a request that says too little, too much or nonsense, and for runs that cannot be read or fitted.
LawsReport laws_report(const LawsRequest& request);

std::string laws_text(const LawsReport& report);
std::string laws_json(const LawsReport& report);

std::string laws_text(const LawsRequest& request);
std::string laws_json(const LawsRequest& request);

}  // namespace sextant
