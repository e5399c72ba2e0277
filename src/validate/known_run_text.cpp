#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "validate/known_run.h"
#include "validate/validation_figures.h"

namespace sextant {

namespace {

std::string signed_percent(double error) {
  return fmt::format("{:+.1f} %", 100 * error);
}

template <class Error>
double median_error(const std::vector<KnownRunResult>& results, Error error) {
  std::vector<double> errors;
  for (const KnownRunResult& result : results) errors.push_back(std::abs(error(result)));
  return quantile(errors, 0.5);
}

}  // namespace

std::string known_runs_text(const std::vector<KnownRunResult>& results) {
  std::string text = fmt::format("{:<36}{:>8}{:>11}{:>10}{:>9}{:>10}{:>9}  {:<21}{:>9}{:>9}\n", "run", "devices",
                                 "measured s", "tables s", "", "fitted s", "", "80 % interval, s", "TFLOP/s", "ours");
  for (const KnownRunResult& r : results)
    text += fmt::format("{:<36}{:>8}{:>11.4g}{:>10.4g}{:>9}{:>10.4g}{:>9}  {:<21}{:>9.0f}{:>9.0f}\n", r.run.name,
                        r.devices, r.measured_s, r.tables_s, signed_percent(r.tables_error()), r.fitted_s,
                        signed_percent(r.fitted_error()),
                        fmt::format("{:.2g} to {:.2g}{}", r.interval.low(r.fitted_s), r.interval.high(r.fitted_s),
                                    r.inside() ? "" : " (no)"),
                        r.measured_tflops, r.tflops_per_device);
  auto inside = std::ranges::count_if(results, &KnownRunResult::inside);
  return text +
         fmt::format(
             "\nmedian error {:.1f} % by tables, {:.1f} % fitted; {} of {} measured steps lie in the interval, (no) "
             "marks the others\nsources, dates and what is assumed: data/known_runs.toml\n",
             100 * median_error(results, [](const auto& r) { return r.tables_error(); }),
             100 * median_error(results, [](const auto& r) { return r.fitted_error(); }), inside, results.size());
}

std::string known_runs_json(const std::vector<KnownRunResult>& results) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const KnownRunResult& r : results) {
    nlohmann::ordered_json one{{"name", r.run.name},
                               {"about", r.run.about},
                               {"source", r.run.source},
                               {"date", r.run.date},
                               {"known", r.run.known},
                               {"machine", r.run.machine},
                               {"software", r.run.software},
                               {"devices", r.devices},
                               {"measured_s", r.measured_s},
                               {"measured_tflops", r.measured_tflops},
                               {"tables_s", r.tables_s},
                               {"fitted_s", r.fitted_s},
                               {"fitted_tflops", r.tflops_per_device},
                               {"interval",
                                {{"share", r.interval.share},
                                 {"low_s", r.interval.low(r.fitted_s)},
                                 {"high_s", r.interval.high(r.fitted_s)},
                                 {"inside", r.inside()}}}};
    if (!r.run.assumed.empty()) one["assumed"] = r.run.assumed;
    list.push_back(std::move(one));
  }
  return nlohmann::ordered_json{{"published", std::move(list)}}.dump(1) + "\n";
}

}  // namespace sextant
