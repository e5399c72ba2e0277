#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "app/page_origin.h"
#include "app/plan_arguments.h"
#include "base/files.h"
#include "validate/calibrate.h"
#include "validate/layout_choice_validation.h"
#include "validate/validation_figures.h"
#include "view/pages/validation_html.h"

namespace sextant {

namespace {

void print_calibrations(Validation& validation, const std::string& only) {
  for (const auto& [name, machine] : validation.machines()) {
    if (!only.empty() && name != only) continue;
    for (Models models : {Models::dense, Models::experts}) {
      Calibration fit = calibrate(validation, name, models);
      if (fit.rows == 0) continue;
      fmt::print("# {}: {} rows, {:.4f} before, {:.4f} after\n[{}]\n", name, fit.rows, fit.before, fit.after,
                 models == Models::dense ? "fitted" : "fitted_experts");
      for (const NamedEfficiency& named : named_efficiencies())
        fmt::print("{} = {:.4g}\n", named.name, fit.efficiency.*named.field);
      fmt::print("\n");
    }
  }
}

// Returns what it found, for intervals of predictions.
std::vector<HeldOutError> print_held_out(Validation& validation, const std::string& only, Models models) {
  std::vector<double> all, medians;
  std::vector<HeldOutError> found;
  for (const auto& [name, machine] : validation.machines()) {
    if (!only.empty() && name != only) continue;
    for (const HeldOut& held : hold_out_sources(validation, name, models)) {
      std::vector<double> errors = held.absolute();
      medians.push_back(quantile(errors, 0.5));
      fmt::print("{:5.1f} %  {} rows of {} on {}, fitted on {} others\n", 100 * medians.back(), errors.size(),
                 held.source, name, held.fitted_on);
      all.insert(all.end(), errors.begin(), errors.end());
      found.insert(found.end(), held.errors.begin(), held.errors.end());
    }
  }
  fmt::print("held out{}: {} rows, median error {:.1f} %, 90th percentile {:.1f} %, median of medians {:.1f} %\n",
             models == Models::experts ? ", models with experts" : "", all.size(), 100 * quantile(all, 0.5),
             100 * quantile(all, 0.9), 100 * quantile(medians, 0.5));
  return found;
}

void hold_out(Validation& validation, const PlanArguments& arguments) {
  std::vector<HeldOutError> errors;
  for (Models models : {Models::dense, Models::experts})
    std::ranges::move(print_held_out(validation, arguments.machine, models), std::back_inserter(errors));
  fmt::print("{}", coverage_text(errors));
  if (!arguments.write.empty()) write_file_atomically(arguments.write, held_out_csv(errors));
}

// Estimates of memory are not fitted: a row is held out of the interval alone.
void hold_out_memory(const Validation& validation, const PlanArguments& arguments) {
  std::vector<HeldOutError> errors = memory_errors(validation, arguments.machine);
  fmt::print("{}{}", memory_errors_text(errors), memory_coverage_text(errors));
  if (!arguments.write.empty()) write_file_atomically(arguments.write, held_out_csv(errors));
}

void print_layout_choices(const Validation& validation, bool json) {
  std::vector<MeasuredGroup> groups = measured_groups(validation);
  std::vector<LayoutChoiceResult> results = layout_choice_results(validation);
  fmt::print("{}", json ? layout_choice_json(groups, results) : layout_choice_text(groups, results));
}

}  // namespace

void validate_verb(const PlanArguments& arguments) {
  std::vector<PublishedRun> runs = read_published_runs(arguments.validate);
  if (arguments.memory)
    std::erase_if(runs, [](const PublishedRun& run) { return !run.memory_gb || run.has_experts(); });
  // No other row counts in a fit.
  if ((arguments.hold_out && !arguments.memory) || arguments.calibrate)
    std::erase_if(runs, [](const PublishedRun& run) { return !run.judged() && !run.judged_experts(); });
  Validation validation(std::move(runs));
  if (arguments.memory) return hold_out_memory(validation, arguments);
  if (arguments.hold_out) return hold_out(validation, arguments);
  if (arguments.calibrate) return print_calibrations(validation, arguments.machine);
  validation.predict(Constants::tables);
  ValidationFigures tables = figures_of(validation);
  validation.predict(Constants::fitted);
  if (arguments.search) return print_layout_choices(validation, arguments.json);
  ValidationFigures fitted = figures_of(validation);
  if (!arguments.report.empty())
    write_file_atomically(arguments.report,
                          validation_html(validation, tables, fitted, page_origin("", "", arguments.command)));
  fmt::print(
      "{}", arguments.json ? validation_json(validation, tables, fitted) : validation_text(validation, tables, fitted));
}

}  // namespace sextant
