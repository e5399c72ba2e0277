#include "watch/prometheus.h"

#include <fmt/format.h>

#include <map>

#include "train/metrics.h"

namespace sextant {

namespace {

std::string metric_name(std::string_view field) {
  std::string name = "sextant_";
  for (char c : field) {
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    name += plain ? c : '_';
  }
  return name;
}

std::string label_text(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out;
}

std::string help_text(std::string_view field) {
  for (const MetricField& known : metric_fields())
    if (known.name == field)
      return fmt::format("{}{}", known.about, known.unit.empty() ? "" : fmt::format(" Unit: {}.", known.unit));
  return "A field of metrics.jsonl.";
}

}  // namespace

std::string prometheus_text(const RunSet& runs, int64_t now) {
  // All samples of one metric stand together.
  std::map<std::string, std::string> samples, help;
  auto add = [&](std::string_view field, const WatchedRun& run, double value) {
    std::string name = metric_name(field);
    help.try_emplace(name, help_text(field));
    samples[name] += fmt::format("{}{{run=\"{}\"}} {}\n", name, label_text(run.name()), value);
  };
  std::string states;
  for (const auto& run : runs.runs()) {
    const RunColumns& columns = run->columns();
    if (columns.rows() > 0) {
      add("step", *run, columns.x(XAxis::step, columns.rows() - 1));
      add("tokens", *run, columns.x(XAxis::tokens, columns.rows() - 1));
    }
    for (const MetricColumn& column : columns.columns())
      if (auto value = columns.last(column.name())) add(column.name(), *run, *value);
    states += fmt::format("sextant_run_state{{run=\"{}\",state=\"{}\"}} 1\n", label_text(run->name()),
                          name_of(run->state(now)));
  }
  std::string out;
  for (const auto& [name, lines] : samples)
    out += fmt::format("# HELP {0} {1}\n# TYPE {0} gauge\n{2}", name, help.at(name), lines);
  if (!states.empty()) out += "# HELP sextant_run_state How the run stands.\n# TYPE sextant_run_state gauge\n" + states;
  return out;
}

}  // namespace sextant
