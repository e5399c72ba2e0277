#include <fmt/format.h>

#include <algorithm>
#include <cmath>
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

// "+1.2"; what would be shown as a zero has no sign.
std::string points(double gain) {
  return std::abs(gain) < 0.05 ? "0.0" : fmt::format("{:+.1f}", gain);
}

// Gain of each addition to a run, measured beside predicted.
std::string ladder_text(const std::vector<KnownRunResult>& results) {
  std::vector<KnownRung> rungs = known_rungs(results);
  if (rungs.empty()) return {};
  std::string text = fmt::format("\n{:<36}{:>10}{:>8}{:>10}{:>8}{:>8}{:>10}{:>8}{:>8}\n", "utilisation, %", "measured",
                                 "gain", "tables", "gain", "off", "fitted", "gain", "off");
  const KnownRunResult* last = nullptr;
  auto first = [](const KnownRunResult& r) {
    return fmt::format("{:<36}{:>10.1f}{:>18.1f}{:>26.1f}\n", r.run.name, r.utilisation(r.measured_s),
                       r.utilisation(r.tables_s), r.utilisation(r.fitted_s));
  };
  for (const KnownRung& rung : rungs) {
    if (rung.before != last) text += first(*rung.before);
    last = rung.run;
    const KnownRunResult& r = *rung.run;
    text += fmt::format("{:<36}{:>10.1f}{:>8}{:>10.1f}{:>8}{:>8}{:>10.1f}{:>8}{:>8}\n", "  " + r.run.about,
                        r.utilisation(r.measured_s), points(rung.measured), r.utilisation(r.tables_s),
                        points(rung.tables), points(rung.tables - rung.measured), r.utilisation(r.fitted_s),
                        points(rung.fitted), points(rung.fitted - rung.measured));
  }
  return text;
}

}  // namespace

std::string known_runs_text(const std::vector<KnownRunResult>& results) {
  std::string text = fmt::format("{:<36}{:>8}{:>11}{:>10}{:>9}{:>10}{:>9}  {:<21}{:>9}{:>9}\n", "run", "devices",
                                 "measured s", "tables s", "", "fitted s", "", "80 % interval, s", "TFLOP/s", "ours");
  for (const KnownRunResult& r : results)
    text += fmt::format("{:<36}{:>8}{:>11.4g}{:>10.4g}{:>9}{:>10.4g}{:>9}  {:<21}{:>9.0f}{:>9.0f}\n", r.run.name,
                        r.devices, r.measured_s, r.tables_s, signed_percent(r.tables_error()), r.fitted_s,
                        signed_percent(r.fitted_error()),
                        fmt::format("{} to {}{}", two_digits(r.interval.low(r.fitted_s)),
                                    two_digits(r.interval.high(r.fitted_s)), r.inside() ? "" : " (no)"),
                        r.measured_tflops, r.tflops_per_device);
  auto inside = std::ranges::count_if(results, &KnownRunResult::inside);
  return text +
         fmt::format(
             "\nmedian error {:.1f} % by tables, {:.1f} % fitted; {} of {} measured steps lie in the interval, (no) "
             "marks the others\nsources, dates and what is assumed: data/known_runs.toml\n",
             100 * median_error(results, [](const auto& r) { return r.tables_error(); }),
             100 * median_error(results, [](const auto& r) { return r.fitted_error(); }), inside, results.size()) +
         ladder_text(results);
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
  nlohmann::ordered_json ladder = nlohmann::ordered_json::array();
  for (const KnownRung& rung : known_rungs(results))
    ladder.push_back({{"name", rung.run->run.name},
                      {"after", rung.before->run.name},
                      {"measured_points", rung.measured},
                      {"tables_points", rung.tables},
                      {"fitted_points", rung.fitted}});
  return nlohmann::ordered_json{{"published", std::move(list)}, {"ladder", std::move(ladder)}}.dump(1) + "\n";
}

}  // namespace sextant
