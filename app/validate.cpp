#include <fmt/format.h>

#include "app/verbs.h"
#include "base/files.h"
#include "plan/calibrate.h"
#include "plan/validation_figures.h"
#include "report/validation_html.h"

namespace sextant {

namespace {

void print_calibrations(Validation& validation, const std::string& only) {
  for (const auto& [name, machine] : validation.machines()) {
    if (!only.empty() && name != only) continue;
    Calibration fit = calibrate(validation, name);
    if (fit.rows == 0) continue;
    fmt::print("# {}: {} rows, {:.4f} before, {:.4f} after\n[fitted]\n", name, fit.rows, fit.before, fit.after);
    for (const NamedEfficiency& named : named_efficiencies()) fmt::print("{} = {:.4g}\n", named.name, fit.efficiency.*named.field);
    fmt::print("\n");
  }
}

}  // namespace

void validate_verb(const PlanArguments& arguments) {
  Validation validation(parse_published_runs(read_file(arguments.validate), arguments.validate));
  if (arguments.calibrate) return print_calibrations(validation, arguments.machine);
  validation.predict(Constants::tables);
  ValidationFigures tables = figures_of(validation);
  validation.predict(Constants::fitted);
  ValidationFigures fitted = figures_of(validation);
  if (!arguments.report.empty()) write_file_atomically(arguments.report, validation_html(validation, tables, fitted));
  fmt::print("{}", arguments.json ? validation_json(validation, tables, fitted) : validation_text(validation, tables, fitted));
}

}  // namespace sextant
