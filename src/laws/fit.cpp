#include "laws/fit.h"

#include <algorithm>
#include <cmath>
#include <compare>
#include <set>

#include "base/error.h"
#include "base/rng.h"
#include "laws/minimise.h"

namespace sextant {

namespace {

size_t distinct(std::span<const LossRun> runs, double LossRun::*field) {
  std::set<double> values;
  for (const LossRun& run : runs) values.insert(run.*field);
  return values.size();
}

bool same_ratio(std::span<const LossRun> runs) {
  auto ratio = [](const LossRun& run) { return run.tokens / run.params; };
  auto [least, most] = std::ranges::minmax_element(runs, {}, ratio);
  return ratio(*most) < 1.01 * ratio(*least);
}

// The problem with these runs, if there is one.
std::optional<Complaint> complaint_about(std::span<const LossRun> runs) {
  if (runs.size() < 6)
    return Complaint{"", fmt::format("{} runs", runs.size()), "at least 6, for a law of five constants", ""};
  if (size_t sizes = distinct(runs, &LossRun::params); sizes < 3)
    return Complaint{
        "", sizes == 1 ? "all runs have the same number of parameters" : "the runs have only 2 sizes of model",
        "3 sizes or more", "What a larger model brings cannot be told apart from what no model can reach."};
  if (size_t lengths = distinct(runs, &LossRun::tokens); lengths < 3)
    return Complaint{
        "", lengths == 1 ? "all runs have the same number of tokens" : "the runs have only 2 numbers of tokens",
        "3 numbers or more", "What more data bring cannot be told apart from what no data can reach."};
  if (same_ratio(runs))
    return Complaint{"", "all runs have the same tokens per parameter", "runs that vary them",
                     "Model and data grow together here, so their shares in the loss cannot be told apart."};
  return std::nullopt;
}

void require_fittable(std::span<const LossRun> runs, std::string_view place) {
  if (std::optional<Complaint> complaint = complaint_about(runs)) {
    complaint->place = std::string(place);
    throw UserError(*complaint);
  }
}

// Draws with replacement until what is drawn can be fitted.
std::vector<LossRun> resample(std::span<const LossRun> runs, const Random& random) {
  std::vector<LossRun> drawn;
  // A set that can be fitted only just is seldom drawn so that it still can; after some tries it stands for itself.
  for (uint64_t attempt = 0; attempt < 50; ++attempt) {
    drawn.clear();
    for (uint64_t i = 0; i < runs.size(); ++i)
      drawn.push_back(runs[static_cast<size_t>(random.below(attempt * runs.size() + i, runs.size()))]);
    if (!complaint_about(drawn)) return drawn;
  }
  return {runs.begin(), runs.end()};
}

double rms_log_error(const ParametricLaw& law, std::span<const LossRun> runs) {
  double sum = 0;
  for (const LossRun& run : runs) {
    double error = std::log(law.loss(run.params, run.tokens) / run.loss);
    sum += error * error;
  }
  return std::sqrt(sum / static_cast<double>(runs.size()));
}

}  // namespace

LawFit fit_law(std::span<const LossRun> runs, std::string_view place, const FitOptions& options) {
  require_fittable(runs, place);
  LawFit fit;
  fit.law = {.name = "your runs",
             .source = fmt::format("{} runs in {}", runs.size(), place),
             .constants = minimise(runs, options.huber_delta, std::nullopt),
             .standard_errors = std::nullopt};
  fit.runs = static_cast<int>(runs.size());
  fit.rms_log_error = rms_log_error(fit.law, runs);
  for (const LossRun& run : runs) fit.largest_compute = std::max(fit.largest_compute, 6 * run.params * run.tokens);
  for (int i = 0; i < options.resamples; ++i) {
    std::vector<LossRun> drawn = resample(runs, Random(options.seed, "bootstrap", static_cast<uint64_t>(i)));
    fit.resamples.push_back(minimise(drawn, options.huber_delta, fit.law.constants));
  }
  return fit;
}

Interval interval_of(const LawFit& fit, const std::function<double(const ParametricLaw&)>& quantity) {
  std::vector<double> values;
  ParametricLaw law = fit.law;
  for (const LawConstants& constants : fit.resamples) {
    law.constants = constants;
    values.push_back(quantity(law));
  }
  BUG_IF(values.empty(), "an interval of no resamples");
  // Even values that are no numbers have a place in this order.
  std::ranges::sort(values, [](double a, double b) { return std::is_lt(std::strong_order(a, b)); });
  auto at = [&](double share) {
    return values[static_cast<size_t>(std::lround(share * static_cast<double>(values.size() - 1)))];
  };
  return {at(0.05), at(0.95)};
}

}  // namespace sextant
