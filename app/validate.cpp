// `sextant validate`: measured runs, predicted and compared.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "app/given_options.h"
#include "app/output_file.h"
#include "app/page_origin.h"
#include "app/validate_options.h"
#include "app/verb.h"
#include "base/files.h"
#include "validate/calibrate.h"
#include "validate/layout_choice_validation.h"
#include "validate/published_run.h"
#include "validate/validation_figures.h"
#include "view/pages/validation_html.h"

namespace sextant {

namespace {

struct ValidateArguments {
  std::string file{kPublishedRuns};  // a CSV file of measured runs
  bool json = false, search = false, calibrate = false, hold_out = false;
  bool memory = false;  // of hold_out: in place of step times
  std::string machine;  // of hold_out and calibrate: runs on it alone
  std::string html;     // a file to write
  std::string write;    // of hold_out: a CSV file to write
};

void add_validate_options(CLI::App& verb, ValidateArguments& a) {
  verb.add_option("file", a.file, "a CSV file of measured runs")->capture_default_str();
  verb.add_flag("--json", a.json, "print JSON");
  verb.add_option("--html", a.html, "write the validation as one HTML file")->check(output_file("--html"));
  verb.add_flag("--search", a.search, "judge the search by layouts that were measured");
  verb.add_flag("--calibrate", a.calibrate, "fit the machines' efficiencies and print them");
  verb.add_flag("--hold-out", a.hold_out, "predict each source by a fit on the others");
  verb.add_option("--machine", a.machine, "with --calibrate or --hold-out: runs on this machine alone");
  verb.add_flag("--memory", a.memory,
                "with --hold-out: how far memory of other software is off, in place of step times");
  verb.add_option("--write", a.write, "with --hold-out: write the errors that intervals are learned from, as CSV")
      ->check(output_file("--write"));
}

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

void hold_out(Validation& validation, const ValidateArguments& arguments) {
  std::vector<HeldOutError> errors;
  for (Models models : {Models::dense, Models::experts})
    std::ranges::move(print_held_out(validation, arguments.machine, models), std::back_inserter(errors));
  fmt::print("{}", coverage_text(errors));
  if (!arguments.write.empty()) write_file_atomically(arguments.write, held_out_csv(errors));
}

// Estimates of memory are not fitted: a row is held out of the interval alone.
void hold_out_memory(const Validation& validation, const ValidateArguments& arguments) {
  std::vector<HeldOutError> errors = memory_errors(validation, arguments.machine);
  fmt::print("{}{}", memory_errors_text(errors), memory_coverage_text(errors));
  if (!arguments.write.empty()) write_file_atomically(arguments.write, held_out_csv(errors));
}

// Layouts that a search would choose, judged by predictions with fitted constants.
void print_layout_choices(Validation& validation, const ValidateArguments& a) {
  validation.predict(Constants::tables);
  validation.predict(Constants::fitted);
  std::vector<MeasuredGroup> groups = measured_groups(validation);
  std::vector<LayoutChoiceResult> results = layout_choice_results(validation);
  fmt::print("{}", a.json ? layout_choice_json(groups, results) : layout_choice_text(groups, results));
}

// Rows that the mode can judge; no other row counts in a fit.
std::vector<PublishedRun> judged_runs(const ValidateArguments& a, ValidateMode mode) {
  std::vector<PublishedRun> runs = read_published_runs(a.file);
  if (a.memory)
    std::erase_if(runs, [](const PublishedRun& run) { return !run.memory_gb || run.has_experts(); });
  else if (mode == ValidateMode::hold_out || mode == ValidateMode::calibrate)
    std::erase_if(runs, [](const PublishedRun& run) { return !run.judged() && !run.judged_experts(); });
  return runs;
}

void print_predictions(Validation& validation, const ValidateArguments& a, const std::string& command) {
  validation.predict(Constants::tables);
  ValidationFigures tables = figures_of(validation);
  validation.predict(Constants::fitted);
  ValidationFigures fitted = figures_of(validation);
  if (!a.html.empty())
    write_file_atomically(a.html, validation_html(validation, tables, fitted, page_origin("", "", command)));
  fmt::print("{}", a.json ? validation_json(validation, tables, fitted) : validation_text(validation, tables, fitted));
}

void run_validate(const ValidateArguments& a, VerbContext& context) {
  std::vector<std::string> given = given_options(*context.verb, validate_options());
  ValidateMode mode = validate_mode(given);
  refuse_unused(validate_options(), static_cast<size_t>(mode), given);
  Validation validation(judged_runs(a, mode));
  switch (mode) {
    case ValidateMode::hold_out:
      return a.memory ? hold_out_memory(validation, a) : hold_out(validation, a);
    case ValidateMode::calibrate:
      return print_calibrations(validation, a.machine);
    case ValidateMode::search:
      return print_layout_choices(validation, a);
    case ValidateMode::predict:
      return print_predictions(validation, a, context.command);
  }
}

constexpr ValueFormat kValidateValues[] = {{"FILE", "a CSV file", "file"}};

}  // namespace

const VerbDef validate_verb{
    .words = "validate",
    .summary = "Predict measured runs and compare with their times",
    .details = "Without a file they are the published runs that come with the program",
    .examples = "sextant validate --html validation.html",
    .values = kValidateValues,
    .declare = declare_verb<add_validate_options, run_validate>,
};

}  // namespace sextant
