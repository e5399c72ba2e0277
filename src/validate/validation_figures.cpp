#include "validate/validation_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace sextant {

namespace {

ErrorSummary summary_of(const std::vector<double>& errors) {
  std::vector<double> absolute;
  for (double e : errors) absolute.push_back(std::abs(e));
  return {.rows = errors.size(),
          .median = quantile(absolute, 0.5),
          .p90 = quantile(absolute, 0.9),
          .bias = quantile(errors, 0.5)};
}

std::map<std::string, ErrorSummary> summaries(const std::map<std::string, std::vector<double>>& errors) {
  std::map<std::string, ErrorSummary> out;
  for (const auto& [name, values] : errors) out[name] = summary_of(values);
  return out;
}

// Rows that differ in layout only.
std::string model_and_machine(const ValidationRow& row) {
  const PublishedRun& p = row.published;
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", p.source, p.gpu, p.gpus.value_or(0), *p.layers, *p.hidden,
                     *p.heads, p.ffn.value_or(0), *p.seq, p.batch.value_or(0), p.precision);
}

PairsOrdered pairs_of(const std::vector<const ValidationRow*>& rows) {
  PairsOrdered found;
  for (size_t i = 0; i < rows.size(); ++i)
    for (size_t j = i + 1; j < rows.size(); ++j) {
      double a = *rows[i]->measured_s, b = *rows[j]->measured_s;
      if (std::max(a, b) <= 1.1 * std::min(a, b)) continue;
      ++found.pairs;
      found.right += (a < b) == (rows[i]->predicted_s < rows[j]->predicted_s);
    }
  return found;
}

MemoryFigures memory_of(const Validation& validation) {
  MemoryFigures out;
  std::vector<double> errors;
  for (const ValidationRow& row : validation.rows()) {
    // Rows of experts are held here as room for the worst routing, which other software does not reserve.
    if (!row.predicted() || row.published.has_experts()) continue;
    if (row.published.out_of_memory) {
      ++out.out_of_memory;
      out.predicted_not_to_fit += !fits(row.predicted_memory, row.run.profile, row.machine);
    }
    if (row.published.memory_gb)
      errors.push_back(
          std::abs(reported_bytes(row.predicted_memory, row.run.profile) / (*row.published.memory_gb * 1e9) - 1));
  }
  out.rows = errors.size();
  out.median = quantile(errors, 0.5);
  return out;
}

ExpertFigures figures_of_experts(const Validation& validation) {
  ExpertFigures f;
  std::vector<double> judged;
  std::map<std::string, std::vector<double>> by_source, by_device, by_model, by_precision, by_profile;
  std::map<std::string, std::vector<const ValidationRow*>> layouts;
  for (const ValidationRow& row : validation.rows()) {
    const PublishedRun& p = row.published;
    if (!p.has_experts()) continue;
    ++f.rows;
    f.judged += p.judged_experts();
    f.converted += row.predicted();
    if (!row.predicted() || !row.measured_s || !p.judged_experts()) continue;
    ++f.judged_converted;
    judged.push_back(row.error());
    by_source[p.source].push_back(row.error());
    by_device[row.run.machine].push_back(row.error());
    by_model[p.model].push_back(row.error());
    by_precision[p.precision].push_back(row.error());
    by_profile[row.run.profile.name].push_back(row.error());
    layouts[model_and_machine(row)].push_back(&row);
  }
  f.judged_errors = summary_of(judged);
  f.by_source = summaries(by_source), f.by_device = summaries(by_device), f.by_model = summaries(by_model);
  f.by_precision = summaries(by_precision), f.by_profile = summaries(by_profile);
  for (const auto& [key, rows] : layouts) {
    PairsOrdered pairs = pairs_of(rows);
    f.pairs.pairs += pairs.pairs, f.pairs.right += pairs.right;
  }
  return f;
}

}  // namespace

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  double at = share * static_cast<double>(values.size() - 1);
  auto below = static_cast<size_t>(at);
  size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

std::vector<HeldOutError> memory_errors(const Validation& validation, std::string_view machine) {
  std::vector<HeldOutError> errors;
  for (const ValidationRow& row : validation.rows()) {
    if (!row.predicted() || row.published.has_experts() || !row.published.memory_gb) continue;
    if (!machine.empty() && row.run.machine != machine) continue;
    HeldOutError& error = errors.emplace_back(HeldOutError{.source = row.published.source, .traits = row.traits()});
    error.traits.dominated = row.predicted_memory.saved > 0.5 * row.predicted_memory.total() ? "activations" : "states";
    error.log_error =
        std::log(reported_bytes(row.predicted_memory, row.run.profile) / (*row.published.memory_gb * 1e9));
  }
  return errors;
}

std::string memory_errors_text(const std::vector<HeldOutError>& errors) {
  std::map<std::string, std::vector<double>> by_software;
  for (const HeldOutError& error : errors)
    by_software[fmt::format("{} on {}", error.traits.software, error.traits.device)].push_back(
        std::expm1(error.log_error));
  std::string out;
  for (const auto& [name, values] : by_software) {
    ErrorSummary summary = summary_of(values);
    out += fmt::format("{:5.1f} %  {} rows of {}, bias {:+.1f} %\n", 100 * summary.median, summary.rows, name,
                       100 * summary.bias);
  }
  return out;
}

ValidationFigures figures_of(const Validation& validation) {
  ValidationFigures f;
  std::vector<double> judged, all;
  std::map<std::string, std::vector<double>> by_source, by_device, by_size;
  std::map<std::string, std::vector<const ValidationRow*>> layouts;
  for (const ValidationRow& row : validation.rows()) {
    ++f.rows;
    f.judged += row.published.judged();
    f.converted += row.predicted();
    if (!row.predicted() || !row.measured_s || row.published.has_experts()) continue;
    all.push_back(row.error());
    if (row.published.grade == Grade::a || row.published.grade == Grade::a_minus)
      layouts[model_and_machine(row)].push_back(&row);
    if (!row.published.judged()) continue;
    ++f.judged_converted;
    judged.push_back(row.error());
    by_source[row.published.source].push_back(row.error());
    by_device[row.run.machine].push_back(row.error());
    by_size[row.traits().size].push_back(row.error());
  }
  f.judged_errors = summary_of(judged), f.all_errors = summary_of(all);
  f.by_source = summaries(by_source), f.by_device = summaries(by_device), f.by_size = summaries(by_size);
  std::vector<double> medians;
  for (const auto& [source, summary] : f.by_source) medians.push_back(summary.median);
  f.median_of_source_medians = quantile(medians, 0.5);
  for (const auto& [key, rows] : layouts) {
    PairsOrdered pairs = pairs_of(rows);
    f.pairs.pairs += pairs.pairs, f.pairs.right += pairs.right;
  }
  f.memory = memory_of(validation);
  f.experts = figures_of_experts(validation);
  return f;
}

}  // namespace sextant
