#include "watch/prometheus.h"

#include <fmt/format.h>

#include <map>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "train/metrics.h"

namespace sextant {

namespace {

constexpr std::string_view kStateMetric = "sextant_run_state";

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
  for (char c : utf8_text(text)) {
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

// A run's value of one metric. A field whose name gives the same metric as another one's is left out.
struct Samples {
  std::string field;
  std::vector<std::pair<int, double>> by_run;

  void add(const WatchedRun& run, double value) {
    if (by_run.empty() || by_run.back().first != run.id()) by_run.emplace_back(run.id(), value);
  }
};

// All samples of one metric stand together.
std::map<std::string, Samples> samples_of(const RunSet& runs) {
  std::map<std::string, Samples> metrics;
  auto add = [&](std::string_view field, const WatchedRun& run, double value) {
    metrics.try_emplace(metric_name(field), Samples{std::string(field), {}}).first->second.add(run, value);
  };
  for (const auto& run : runs.runs()) {
    const RunColumns& columns = run->columns();
    if (columns.rows() > 0) {
      add("step", *run, columns.x(XAxis::step, columns.rows() - 1));
      add("tokens", *run, columns.x(XAxis::tokens, columns.rows() - 1));
    }
    for (const MetricColumn& column : columns.columns())
      if (auto value = columns.last(column.name())) add(column.name(), *run, *value);
  }
  metrics.erase(std::string(kStateMetric));
  return metrics;
}

std::map<int, std::string> labels_of(const RunSet& runs) {
  std::map<std::string, int> times;
  std::map<int, std::string> labels;
  for (const auto& run : runs.runs()) ++times[label_text(run->name())];
  for (const auto& run : runs.runs()) {
    std::string label = label_text(run->name());
    labels[run->id()] = times[label] == 1 ? label : label_text(run->directory().string());
  }
  return labels;
}

std::string described(std::string_view name, std::string_view help) {
  return fmt::format("# HELP {0} {1}\n# TYPE {0} gauge\n", name, help);
}

std::string states_text(const RunSet& runs, const std::map<int, std::string>& labels, int64_t now) {
  std::string out;
  for (const auto& run : runs.runs())
    if (auto label = labels.find(run->id()); label != labels.end())
      out += fmt::format("{}{{run=\"{}\",state=\"{}\"}} 1\n", kStateMetric, label->second, name_of(run->state(now)));
  return out.empty() ? out : described(kStateMetric, "How the run stands.") + out;
}

}  // namespace

BodyPieces prometheus_pieces(const RunSet& runs, int64_t now) {
  return [&runs, now, metrics = samples_of(runs), labels = labels_of(runs)](std::string& out) mutable {
    if (metrics.empty()) {
      out += states_text(runs, labels, now);
      return false;
    }
    const auto& [name, samples] = *metrics.begin();
    out += described(name, help_text(samples.field));
    for (auto [run, value] : samples.by_run) out += fmt::format("{}{{run=\"{}\"}} {}\n", name, labels.at(run), value);
    metrics.erase(metrics.begin());
    return true;
  };
}

}  // namespace sextant
