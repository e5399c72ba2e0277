#include "watch/run_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "train/metrics.h"
#include "watch/field_label.h"
#include "watch/run_comparison.h"

namespace sextant {

namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostEventsShown = 2000;  // of one run, the last ones

std::string dumped(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

template <typename Numbers>
void append_numbers(std::string& out, std::string_view name, const Numbers& numbers) {
  fmt::format_to(std::back_inserter(out), "\"{}\":[", name);
  bool first = true;
  for (auto number : numbers) {
    if (!first) out += ',';
    first = false;
    fmt::format_to(std::back_inserter(out), "{}", number);
  }
  out += ']';
}

Json field_list() {
  Json fields = Json::array();
  for (const MetricField& field : metric_fields())
    fields.push_back(
        {{"name", field.name}, {"label", field_label(field.name)}, {"unit", field.unit}, {"about", field.about}});
  return fields;
}

Json run_summary(const WatchedRun& run, int64_t now) {
  const RunColumns& columns = run.columns();
  Json json{{"id", run.id()},
            {"name", run.name()},
            {"state", name_of(run.state(now))},
            {"loading", run.is_loading()},
            {"rows", columns.rows()},
            {"modified", run.modified()},
            {"events", run.events().size()}};
  size_t last = columns.rows() - 1;
  for (auto [name, axis] : kXAxes)
    json[std::string(name)] = columns.has_axis(axis) ? Json(columns.x(axis, last)) : Json(nullptr);
  if (run.plan()) json["plan"] = {{"machine", run.plan()->machine}, {"step_s", run.plan()->seconds}};
  json["last"] = Json::object();
  for (const MetricColumn& column : columns.columns())
    if (auto value = columns.last(column.name())) json["last"][column.name()] = *value;
  json["lists"] = Json::object();
  for (const ListColumn& list : columns.lists()) json["lists"][list.name()] = list.width();
  return json;
}

// With the digits that a picture shows.
double short_x(XAxis axis, double x) {
  return axis == XAxis::seconds ? std::round(x * 1000) / 1000 : x;
}

void append_exported_series(std::string& out, const RunColumns& run, const MetricColumn& column, size_t parts) {
  SeriesPoints points = decimated(run, column, {.axis = XAxis::step, .parts = parts});
  std::vector<size_t> rows;
  for (double step : points.x) rows.push_back(run.first_row_at_or_after(XAxis::step, step));
  out += dumped(column.name()) + ":{";
  for (auto [name, axis] : kXAxes) {
    if (!run.has_axis(axis)) continue;
    std::vector<double> x;
    for (size_t row : rows) x.push_back(short_x(axis, run.x(axis, row)));
    append_numbers(out, name, x);
    out += ',';
  }
  append_numbers(out, "y", points.y);
  out += fmt::format(",\"sparse\":{}}}", column.is_sparse());
}

// A list for a page without a server.
std::string list_by_axis(const WatchedRun& run, const ListColumn& list) {
  std::string out;
  for (auto [name, axis] : kXAxes)
    out += fmt::format("{}\"{}\":{}", out.empty() ? "" : ",", name, list_json(run, list, axis));
  return "{" + out + "}";
}

// With each of few runs as the one that the others are compared with; of many, with the first.
std::string exported_comparisons(const RunSet& runs) {
  constexpr size_t kFewRuns = 8;
  std::vector<const WatchedRun*> all;
  for (const auto& run : runs.runs()) all.push_back(run.get());
  std::string out;
  for (size_t base = 0; base < (all.size() <= kFewRuns ? all.size() : 1); ++base) {
    std::vector<const WatchedRun*> compared = all;
    std::rotate(compared.begin(), compared.begin() + static_cast<std::ptrdiff_t>(base),
                compared.begin() + static_cast<std::ptrdiff_t>(base) + 1);
    Json json = Json::parse(comparison_json(compare_with_first(compared)));
    json["runs"] = Json::array();
    for (size_t i = 1; i < compared.size(); ++i) json["runs"].push_back(compared[i]->id());
    out += fmt::format("{}\"{}\":{}", base == 0 ? "" : ",", compared[0]->id(), dumped(json));
  }
  return "{" + out + "}";
}

}  // namespace

std::string runs_json(const RunSet& runs, int64_t now) {
  Json json{{"now", now}, {"fields", field_list()}, {"runs", Json::array()}};
  for (const auto& run : runs.runs()) json["runs"].push_back(run_summary(*run, now));
  return dumped(json);
}

std::string series_json(const RunSet& runs, const SeriesQuestion& question) {
  std::string out = "{\"series\":[";
  bool first = true;
  for (int id : question.runs) {
    const WatchedRun* run = runs.find(id);
    const MetricColumn* column = run ? run->columns().column(question.field) : nullptr;
    if (!column || !run->columns().has_axis(question.range.axis)) continue;
    SeriesPoints raw = decimated(run->columns(), *column, question.range);
    out += fmt::format("{}{{\"run\":{},", first ? "" : ",", id);
    append_numbers(out, "x", raw.x);
    append_numbers(out += ',', "y", raw.y);
    // A few values, such as validation losses, are shown as they are: their average would lag far behind.
    if (question.smoothing > 0 && !column->is_sparse()) {
      SeriesPoints smooth = decimated_smooth(run->columns(), *column, question.range, question.smoothing);
      append_numbers(out += ',', "smooth_x", smooth.x);
      append_numbers(out += ',', "smooth", smooth.y);
    }
    out += '}';
    first = false;
  }
  return out + "]}";
}

std::string list_json(const WatchedRun& run, const ListColumn& list, XAxis axis) {
  std::vector<double> x;
  std::vector<float> values;
  for (size_t i = 0; i < list.size() && run.columns().has_axis(axis); ++i) {
    x.push_back(run.columns().x(axis, list.row(i)));
    for (size_t e = 0; e < list.width(); ++e) values.push_back(list.value(i, e));
  }
  std::string out = fmt::format("{{\"width\":{},", list.width());
  append_numbers(out, "x", x);
  append_numbers(out += ',', "values", values);
  return out + "}";
}

std::string events_json(const RunSet& runs, const std::vector<int>& ids) {
  Json json = Json::array();
  for (int id : ids) {
    const WatchedRun* run = runs.find(id);
    if (!run) continue;
    const std::vector<RunEvent>& events = run->events();
    const RunColumns& columns = run->columns();
    for (size_t i = events.size() - std::min(events.size(), kMostEventsShown); i < events.size(); ++i) {
      Json one{{"run", id}, {"time", events[i].time}, {"event", name_of(events[i].kind)}, {"text", events[i].text}};
      if (events[i].step) {
        one["step"] = *events[i].step;
        // Where it stands on the other axes: at its row, or at the last one there is.
        if (columns.rows() > 0) {
          size_t row = std::min(columns.row_of_step(*events[i].step), columns.rows() - 1);
          for (auto [name, axis] : kXAxes)
            if (axis != XAxis::step && columns.has_axis(axis)) one[std::string(name)] = columns.x(axis, row);
        }
      }
      json.push_back(std::move(one));
    }
  }
  return dumped(json);
}

std::string export_json(const RunSet& runs, size_t parts, int64_t now) {
  std::vector<int> ids;
  std::string series, lists;
  for (const auto& run : runs.runs()) {
    ids.push_back(run->id());
    series += fmt::format("{}\"{}\":{{", series.empty() ? "" : ",", run->id());
    bool first = true;
    for (const MetricColumn& column : run->columns().columns()) {
      if (!first) series += ',';
      first = false;
      append_exported_series(series, run->columns(), column, parts);
    }
    series += '}';
    lists += fmt::format("{}\"{}\":{{", lists.empty() ? "" : ",", run->id());
    first = true;
    for (const ListColumn& list : run->columns().lists()) {
      lists += fmt::format("{}{}:{}", first ? "" : ",", dumped(list.name()), list_by_axis(*run, list));
      first = false;
    }
    lists += '}';
  }
  std::string ops;
  for (const auto& run : runs.runs())
    ops += fmt::format("{}\"{}\":{}", ops.empty() ? "" : ",", run->id(),
                       op_comparison_json(compare_ops(run->directory())));
  return fmt::format(
      "{{\"about\":{},\"series\":{{{}}},\"lists\":{{{}}},\"events\":{},\"ops\":{{{}}},\"comparisons\":{}}}",
      runs_json(runs, now), series, lists, events_json(runs, ids), ops, exported_comparisons(runs));
}

}  // namespace sextant
