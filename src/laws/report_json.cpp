#include <nlohmann/json.hpp>

#include "laws/report.h"

namespace sextant {

namespace {

using Json = nlohmann::ordered_json;

Json optional_number(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json optimum_json(const Optimum& best) {
  return {{"params", best.params},
          {"tokens", best.tokens},
          {"flops", best.compute()},
          {"loss", optional_number(best.loss)}};
}

Json interval_json(const LawFit& fit, const std::function<double(const ParametricLaw&)>& quantity) {
  Interval range = interval_of(fit, quantity);
  return {{"value", quantity(fit.law)}, {"low", range.low}, {"high", range.high}};
}

Json fit_json(const LawsReport& report) {
  const LawFit& fit = *report.fit;
  Json json{{"source", fit.law.source},
            {"runs", fit.runs},
            {"resamples", fit.resamples.size()},
            {"interval_percentiles", {5, 95}},
            {"E", interval_json(fit, [](const ParametricLaw& law) { return law.constants.E; })},
            {"A", interval_json(fit, [](const ParametricLaw& law) { return law.constants.A; })},
            {"B", interval_json(fit, [](const ParametricLaw& law) { return law.constants.B; })},
            {"alpha", interval_json(fit, [](const ParametricLaw& law) { return law.constants.alpha; })},
            {"beta", interval_json(fit, [](const ParametricLaw& law) { return law.constants.beta; })},
            {"params_exponent", interval_json(fit, [](const ParametricLaw& law) { return law.split().exponent; })},
            {"rms_log_error", fit.rms_log_error},
            {"largest_run_flops", fit.largest_compute}};
  if (!report.rows.empty()) {
    double compute = report.optimum.compute();
    json["optimum_params"] = interval_json(fit, [=](const ParametricLaw& law) { return law.optimum(compute).params; });
    json["optimum_loss"] = interval_json(fit, [=](const ParametricLaw& law) { return *law.optimum(compute).loss; });
  }
  return json;
}

Json lifetime_json(const Lifetime& life) {
  return {{"params", life.params},
          {"tokens", life.tokens},
          {"loss", life.loss},
          {"training_flops", life.training_flops},
          {"inference_flops", life.inference_flops},
          {"total_flops", life.total()}};
}

}  // namespace

std::string laws_json(const LawsReport& report) {
  const LawsRequest& request = report.request;
  Json json{{"request",
             {{"compute", optional_number(request.compute)},
              {"tokens", optional_number(request.tokens)},
              {"params", optional_number(request.params)},
              {"inference_tokens", request.inference_tokens}}},
            {"laws", Json::array()}};
  for (const LawRow& row : report.rows) {
    Json law{{"name", row.law.name}, {"source", row.law.source}, {"optimum", optimum_json(row.optimum)}};
    if (row.decided_loss) law["loss_as_given"] = *row.decided_loss;
    json["laws"].push_back(std::move(law));
  }
  if (report.fit) json["fit"] = fit_json(report);
  json["undersized_tradeoff"] = {
      {"law", report.law.name}, {"size_limit", size_limit(report.law)}, {"rows", Json::array()}};
  for (const UndersizedTradeoff& row : report.smaller)
    json["undersized_tradeoff"]["rows"].push_back(
        {{"size", row.size}, {"tokens", row.tokens}, {"overhead", row.overhead}});
  if (report.lifetime) {
    const LifetimeComparison& life = *report.lifetime;
    json["lifetime"] = {{"law", report.law.name},
                        {"inference_tokens", life.inference_tokens},
                        {"compute_optimal", lifetime_json(life.compute_optimal)},
                        {"cheapest_for_its_loss", lifetime_json(life.cheapest)},
                        {"best_for_its_total", lifetime_json(life.best)},
                        {"saving", life.saving()}};
  }
  // File names come from outside and need not be UTF-8.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace sextant
