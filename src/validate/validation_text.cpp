#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "validate/validation_figures.h"

namespace sextant {

namespace {

std::string percent(double fraction) {
  return fmt::format("{:.1f} %", 100 * fraction);
}

std::string errors_line(const char* name, const ValidationFigures& f) {
  return fmt::format("{:<22} median {:>7}   90th percentile {:>7}   median of source medians {:>7}\n", name,
                     percent(f.judged_errors.median), percent(f.judged_errors.p90),
                     percent(f.median_of_source_medians));
}

std::string breakdown(const std::string& title, const std::map<std::string, ErrorSummary>& parts) {
  std::string out = fmt::format("\n{:<72}{:>6}{:>9}{:>9}{:>9}\n", title, "rows", "median", "90th", "bias");
  for (const auto& [name, s] : parts)
    out += fmt::format("  {:<70}{:>6}{:>9}{:>9}{:>9}\n", name.substr(0, 68), s.rows, percent(s.median), percent(s.p90),
                       percent(s.bias));
  return out;
}

// The names on lines of at most 120 characters, below their reason.
std::string listed_models(const std::set<std::string>& models) {
  constexpr size_t kWidth = 120;
  const std::string indent(8, ' ');
  std::string out, line = indent;
  for (const std::string& model : models) {
    std::string_view apart = line.size() == indent.size() ? "" : ", ";
    if (line.size() + apart.size() + model.size() > kWidth) {
      out += line + ",\n";
      line = indent;
      apart = "";
    }
    line += std::string(apart) + model;
  }
  return out + line + "\n";
}

std::string not_predicted(const Validation& validation) {
  struct Reason {
    size_t rows = 0;
    std::set<std::string> models;
  };
  std::map<std::string, Reason> reasons;
  for (const ValidationRow& row : validation.rows()) {
    if (row.predicted()) continue;
    Reason& reason = reasons[row.why_not];
    ++reason.rows;
    reason.models.insert(row.published.model);
  }
  std::string out = "\nrows that are not predicted, with their models\n";
  for (const auto& [why, reason] : reasons)
    out += fmt::format("  {:>4}  {}\n{}", reason.rows, why, listed_models(reason.models));
  return out;
}

std::string experts_text(const ExpertFigures& tables, const ExpertFigures& fitted) {
  auto errors = [](const char* name, const ErrorSummary& s) {
    return fmt::format("{:<22} median {:>7}   90th percentile {:>7}   bias {:>7}\n", name, percent(s.median),
                       percent(s.p90), percent(s.bias));
  };
  std::string out = fmt::format(
      "\nmodels with experts: {} rows; {} can be converted; of the {} judged (A, layout given) {} are predicted\n\n",
      fitted.rows, fitted.converted, fitted.judged, fitted.judged_converted);
  out += errors("published tables only", tables.judged_errors) + errors("fitted efficiencies", fitted.judged_errors);
  out += fmt::format("layouts of one model on one machine, more than 10 % apart: {} of {} pairs ordered right\n",
                     fitted.pairs.right, fitted.pairs.pairs);
  return out + breakdown("experts, by source", fitted.by_source) +
         breakdown("experts, by software", fitted.by_profile) + breakdown("experts, by device", fitted.by_device) +
         breakdown("experts, by model", fitted.by_model) + breakdown("experts, by precision", fitted.by_precision);
}

nlohmann::ordered_json summary_json(const ErrorSummary& s) {
  return {{"rows", s.rows}, {"median_abs_error", s.median}, {"p90_abs_error", s.p90}, {"bias", s.bias}};
}

nlohmann::ordered_json summaries_json(const std::map<std::string, ErrorSummary>& parts) {
  nlohmann::ordered_json out;
  for (const auto& [name, s] : parts) out[name] = summary_json(s);
  return out;
}

}  // namespace

std::string validation_text(const Validation& validation, const ValidationFigures& tables,
                            const ValidationFigures& fitted) {
  std::string out =
      fmt::format("{} rows; {} can be converted; of the {} judged (dense, A, layout given) {} are predicted\n\n",
                  fitted.rows, fitted.converted, fitted.judged, fitted.judged_converted);
  out += errors_line("published tables only", tables) + errors_line("fitted efficiencies", fitted);
  out += fmt::format("layouts of one model on one machine, more than 10 % apart: {} of {} pairs ordered right\n",
                     fitted.pairs.right, fitted.pairs.pairs);
  out += fmt::format("memory: median error {} over {} rows; {} of {} rows that did not fit are predicted not to\n",
                     percent(fitted.memory.median), fitted.memory.rows, fitted.memory.predicted_not_to_fit,
                     fitted.memory.out_of_memory);
  out += breakdown("by source", fitted.by_source) + breakdown("by device", fitted.by_device) +
         breakdown("by size", fitted.by_size);
  return out + experts_text(tables.experts, fitted.experts) + not_predicted(validation);
}

std::string validation_json(const Validation& validation, const ValidationFigures& tables,
                            const ValidationFigures& fitted) {
  nlohmann::ordered_json out;
  out["validate"] = {{"rows", fitted.rows},
                     {"expressed", fitted.converted},
                     {"judged", fitted.judged},
                     {"judged_expressed", fitted.judged_converted},
                     {"median_abs_error", fitted.judged_errors.median},
                     {"p90_abs_error", fitted.judged_errors.p90},
                     {"median_of_source_medians", fitted.median_of_source_medians},
                     {"tables_only", summary_json(tables.judged_errors)},
                     {"pairs", {{"compared", fitted.pairs.pairs}, {"ordered_right", fitted.pairs.right}}},
                     {"memory",
                      {{"rows", fitted.memory.rows},
                       {"median_abs_error", fitted.memory.median},
                       {"out_of_memory", fitted.memory.out_of_memory},
                       {"foreseen", fitted.memory.predicted_not_to_fit}}},
                     {"by_source", summaries_json(fitted.by_source)},
                     {"by_device", summaries_json(fitted.by_device)},
                     {"by_size", summaries_json(fitted.by_size)},
                     {"experts",
                      {{"rows", fitted.experts.rows},
                       {"expressed", fitted.experts.converted},
                       {"judged", fitted.experts.judged},
                       {"judged_expressed", fitted.experts.judged_converted},
                       {"fitted", summary_json(fitted.experts.judged_errors)},
                       {"tables_only", summary_json(tables.experts.judged_errors)},
                       {"by_source", summaries_json(fitted.experts.by_source)},
                       {"by_software", summaries_json(fitted.experts.by_profile)},
                       {"by_device", summaries_json(fitted.experts.by_device)},
                       {"by_model", summaries_json(fitted.experts.by_model)},
                       {"by_precision", summaries_json(fitted.experts.by_precision)}}}};
  auto& list = out["validate"]["each"] = nlohmann::ordered_json::array();
  for (const ValidationRow& row : validation.rows()) {
    nlohmann::ordered_json one = {{"file", row.published.file},
                                  {"line", row.published.line},
                                  {"source", row.published.source},
                                  {"model", row.published.model}};
    if (!row.predicted()) {
      one["why_not"] = row.why_not;
    } else {
      one["predicted_s"] = row.predicted_s;
      const ForeignMemory& memory = row.predicted_memory;
      one["predicted_memory_bytes"] = memory.total();
      one["fits"] = fits(memory, row.run.profile, row.machine);
      one["predicted_memory"] = {{"weights", memory.weights},     {"gradients", memory.gradients},
                                 {"optimizer", memory.optimizer}, {"activations", memory.saved},
                                 {"working", memory.working},     {"buffers", memory.buffers},
                                 {"overhead", memory.context}};
      one["profile"] = row.run.profile.name;
      one["machine"] = row.run.machine;
      one["judged"] = row.published.judged() || row.published.judged_experts();
      if (auto measured = row.measured_s) one["measured_s"] = *measured, one["error"] = row.error();
      if (!row.run.assumed.empty()) one["assumed"] = row.run.assumed;
    }
    list.push_back(std::move(one));
  }
  return out.dump(1) + "\n";
}

}  // namespace sextant
