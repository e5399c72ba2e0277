#include <fmt/format.h>

#include "laws/quantity.h"
#include "laws/report.h"

namespace sextant {

namespace {

std::string loss_text(const std::optional<double>& loss) {
  return loss ? fmt::format("{:.3f}", *loss) : "–";
}

std::string asked(const LawsRequest& request) {
  if (request.compute) return fmt::format("{} FLOPs of training (6·N·D)", human_flops(*request.compute));
  if (request.decided())
    return fmt::format(
        "{} parameters on {} tokens, {} FLOPs of training (6·N·D), and what that compute is best spent on",
        human_quantity(*request.params), human_quantity(*request.tokens),
        human_flops(6 * *request.params * *request.tokens));
  if (request.params) return fmt::format("the training that makes {} parameters best", human_quantity(*request.params));
  return fmt::format("the model that {} tokens are best for", human_quantity(*request.tokens));
}

std::string laws_table(const LawsReport& report) {
  bool decided = report.request.decided();
  std::string out = asked(report.request) + "\n\n";
  out += fmt::format("{:<42}{:>9}{:>9}{:>9}{:>12}{:>7}{}\n", "law", "params", "tokens", "tokens/N", "FLOPs", "loss",
                     decided ? "  as given" : "");
  for (const LawRow& row : report.rows) {
    const Optimum& best = row.optimum;
    out += fmt::format("{:<42}{:>9}{:>9}{:>9}{:>12}{:>7}", row.law.name, human_quantity(best.params),
                       human_quantity(best.tokens), human_ratio(best.tokens / best.params), human_flops(best.compute()),
                       loss_text(best.loss));
    out += decided ? fmt::format("{:>10}\n", loss_text(row.decided_loss)) : "\n";
  }
  return out +
         "\nLosses are nats per token on the corpus and tokenizer of each law's runs: compare them within a law, not "
         "between laws.\n";
}

using Quantity = std::function<double(const ParametricLaw&)>;

std::string fitted_line(const LawFit& fit, const char* name, const Quantity& quantity, std::string (*show)(double)) {
  Interval range = interval_of(fit, quantity);
  return fmt::format("  {:<22}{:>10}   {} to {}\n", name, show(quantity(fit.law)), show(range.low), show(range.high));
}

std::string four_digits(double value) {
  return fmt::format("{:.4g}", value);
}

std::string constants_text(const LawFit& fit) {
  std::string out;
  out += fitted_line(
      fit, "E", [](const ParametricLaw& law) { return law.constants.E; }, four_digits);
  out += fitted_line(
      fit, "A", [](const ParametricLaw& law) { return law.constants.A; }, four_digits);
  out += fitted_line(
      fit, "B", [](const ParametricLaw& law) { return law.constants.B; }, four_digits);
  out += fitted_line(
      fit, "alpha", [](const ParametricLaw& law) { return law.constants.alpha; }, four_digits);
  out += fitted_line(
      fit, "beta", [](const ParametricLaw& law) { return law.constants.beta; }, four_digits);
  return out +
         fitted_line(
             fit, "N* grows as C to the", [](const ParametricLaw& law) { return law.split().exponent; }, four_digits);
}

std::string forecast_text(const LawFit& fit, double compute) {
  std::string out = fmt::format("  at {} FLOPs\n", human_flops(compute));
  out += fitted_line(
      fit, "parameters", [=](const ParametricLaw& law) { return law.optimum(compute).params; }, human_quantity);
  out += fitted_line(
      fit, "tokens", [=](const ParametricLaw& law) { return law.optimum(compute).tokens; }, human_quantity);
  out += fitted_line(
      fit, "loss", [=](const ParametricLaw& law) { return *law.optimum(compute).loss; }, four_digits);
  if (compute > 10 * fit.largest_compute)
    out += fmt::format("  That is {} times the compute of the largest run: far to extrapolate.\n",
                       human_ratio(compute / fit.largest_compute));
  return out;
}

std::string fit_text(const LawsReport& report) {
  const LawFit& fit = *report.fit;
  std::string out =
      fmt::format("fitted to {}: L = E + A/N^alpha + B/D^beta, off by {:.2f} % of the loss (root mean square)\n",
                  fit.law.source, 100 * fit.rms_log_error);
  out += fmt::format("  {:<22}{:>10}   5th to 95th percentile of {} resamples\n", "", "", fit.resamples.size());
  out += constants_text(fit);
  return report.rows.empty() ? out : out + forecast_text(fit, report.optimum.compute());
}

std::string smaller_table(const LawsReport& report) {
  bool sized = !report.rows.empty();
  std::string out = fmt::format("smaller, trained longer, to the same loss ({})\n", report.law.name);
  out +=
      fmt::format("  {:>6}{:>9}{:>11}{}\n", "size", "tokens", "compute", sized ? "     params   tokens  tokens/N" : "");
  for (const UndersizedTradeoff& row : report.smaller) {
    out += fmt::format("  {:>5.2f}×{:>8}×{:>+9.1f} %", row.size, human_ratio(row.tokens), 100 * row.overhead);
    double params = row.size * report.optimum.params, tokens = row.tokens * report.optimum.tokens;
    out += sized ? fmt::format("{:>11}{:>9}{:>10}\n", human_quantity(params), human_quantity(tokens),
                               human_ratio(tokens / params))
                 : "\n";
  }
  return out + fmt::format("  at {:.3f}× and below, never\n", size_limit(report.law));
}

std::string lifetime_row(const char* title, const Lifetime& life) {
  return fmt::format("  {:<34}{:>9}{:>9}{:>9}{:>7.3f}{:>11}{:>11}{:>11}\n", title, human_quantity(life.params),
                     human_quantity(life.tokens), human_ratio(life.tokens / life.params), life.loss,
                     human_flops(life.training_flops), human_flops(life.inference_flops), human_flops(life.total()));
}

std::string lifetime_text(const LawsReport& report) {
  const LifetimeComparison& life = *report.lifetime;
  std::string out = fmt::format("with {} tokens served afterwards, 2·N FLOPs each ({})\n",
                                human_quantity(life.inference_tokens), report.law.name);
  out += fmt::format("  {:<34}{:>9}{:>9}{:>9}{:>7}{:>11}{:>11}{:>11}\n", "", "params", "tokens", "tokens/N", "loss",
                     "training", "serving", "in all");
  out += lifetime_row("best for training alone", life.compute_optimal);
  out += lifetime_row("the same loss for the least in all", life.cheapest);
  out += lifetime_row("the best loss for as much in all", life.best);
  return out + fmt::format("  the second saves {:.1f} % of the first\n", 100 * life.saving());
}

}  // namespace

std::string laws_text(const LawsReport& report) {
  std::string out;
  if (!report.rows.empty()) out += laws_table(report) + "\n";
  if (report.fit) out += fit_text(report) + "\n";
  out += smaller_table(report);
  if (report.lifetime) out += "\n" + lifetime_text(report);
  return out;
}

}  // namespace sextant
