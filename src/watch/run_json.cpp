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
    if (std::isfinite(number))
      fmt::format_to(std::back_inserter(out), "{}", number);
    else
      out += "null";  // JSON has no other number for it
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

// Of the directory, so that a run has the same colour whichever others are shown. FNV-1a, folded to what pages need.
uint32_t colour_key(const WatchedRun& run) {
  uint32_t hash = 2166136261u;
  for (unsigned char c : run.directory().string()) hash = (hash ^ c) * 16777619u;
  return (hash ^ hash >> 16) & 0xFFFF;
}

Json run_summary(const WatchedRun& run, int64_t now) {
  const RunColumns& columns = run.columns();
  Json json{{"id", run.id()},
            {"name", run.name()},
            {"colour", colour_key(run)},
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

// "[...]" between two texts: one item a piece. `append(out, item)` says whether there was anything to append.
template <class Item, class Append>
BodyPieces listed(std::string before, std::vector<Item> items, Append append, std::string after) {
  return [before = std::move(before), items = std::move(items), append = std::move(append), after = std::move(after),
          next = size_t{0}, any = false](std::string& out) mutable {
    if (next == 0) out += before + "[";
    if (next < items.size()) {
      size_t begin = out.size();
      if (any) out += ',';
      if (append(out, items[next]))
        any = true;
      else
        out.resize(begin);
    }
    if (++next < items.size()) return true;
    out += "]" + after;
    return false;
  };
}

std::vector<int> ids_of(const RunSet& runs) {
  std::vector<int> ids;
  for (const auto& run : runs.runs()) ids.push_back(run->id());
  return ids;
}

// Runs that are not there take no share of an answer's limits.
std::vector<int> known_ids(const RunSet& runs, std::vector<int> ids) {
  std::erase_if(ids, [&](int id) { return runs.find(id) == nullptr; });
  return ids;
}

bool append_series(std::string& out, const WatchedRun& run, const SeriesQuestion& question) {
  const RunColumns& columns = run.columns();
  const MetricColumn* column = columns.column(question.field);
  if (!column || !columns.has_axis(question.range.axis)) return false;
  SeriesPoints raw = decimated(columns, *column, question.range);
  out += fmt::format("{{\"run\":{},", run.id());
  append_numbers(out, "x", raw.x);
  append_numbers(out += ',', "y", raw.y);
  // A few values, such as validation losses, are shown as they are: their average would lag far behind.
  if (question.smoothing > 0 && !column->is_sparse()) {
    SeriesPoints smooth = decimated_smooth(columns, *column, question.range, question.smoothing);
    append_numbers(out += ',', "smooth_x", smooth.x);
    append_numbers(out += ',', "smooth", smooth.y);
  }
  out += '}';
  return true;
}

struct PlaceOfEvent {
  int run = 0;
  size_t index = 0;
};

// The last events of a run, those whose lines have no more than `bytes` together.
void append_shown_events(std::vector<PlaceOfEvent>& places, const RunSet& runs, int id, size_t bytes) {
  const WatchedRun* run = runs.find(id);
  if (!run) return;
  const KeptEvents& events = run->kept_events();
  size_t end = events.all().size(), begin = end;
  while (begin > 0 && end - begin < kMostEventsShown && events.bytes_of(begin - 1) <= bytes)
    bytes -= events.bytes_of(--begin);
  for (size_t i = begin; i < end; ++i) places.push_back({id, i});
}

Json event_json(const WatchedRun& run, const RunEvent& event) {
  Json json{{"run", run.id()}, {"time", event.time}, {"event", name_of(event.kind)}, {"text", event.text}};
  if (!event.step) return json;
  json["step"] = *event.step;
  const RunColumns& columns = run.columns();
  if (columns.rows() == 0) return json;
  // Where it stands on the other axes: at its row, or at the last one there is.
  size_t row = std::min(columns.row_of_step(*event.step), columns.rows() - 1);
  for (auto [name, axis] : kXAxes)
    if (axis != XAxis::step && columns.has_axis(axis)) json[std::string(name)] = columns.x(axis, row);
  return json;
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

BodyPieces runs_json(const RunSet& runs, int64_t now) {
  std::string head = fmt::format("{{\"now\":{},\"fields\":{},\"runs\":", now, dumped(field_list()));
  auto append = [&runs, now](std::string& out, int id) {
    const WatchedRun* run = runs.find(id);
    if (run) out += dumped(run_summary(*run, now));
    return run != nullptr;
  };
  return listed(std::move(head), ids_of(runs), append, "}");
}

BodyPieces series_json(const RunSet& runs, SeriesQuestion question) {
  std::vector<int> ids = known_ids(runs, std::move(question.runs));
  question.range.parts = std::clamp<size_t>(kMostSeriesParts / std::max<size_t>(ids.size(), 1), 1,
                                            std::max<size_t>(question.range.parts, 1));
  auto append = [&runs, question = std::move(question)](std::string& out, int id) {
    const WatchedRun* run = runs.find(id);
    return run && append_series(out, *run, question);
  };
  return listed("{\"series\":", std::move(ids), append, "}");
}

std::string list_json(const WatchedRun& run, const ListColumn& list, XAxis axis) {
  std::vector<double> x, until;
  std::vector<float> values;
  const RunColumns& columns = run.columns();
  for (size_t i = 0; i < list.size() && columns.has_axis(axis); ++i) {
    x.push_back(columns.x(axis, list.row(i)));
    until.push_back(columns.x(axis, std::min(list.until_row(i), columns.rows() - 1)));
    for (size_t e = 0; e < list.width(); ++e) values.push_back(list.value(i, e));
  }
  std::string out = fmt::format("{{\"width\":{},", list.width());
  append_numbers(out, "x", x);
  append_numbers(out += ',', "until", until);
  append_numbers(out += ',', "values", values);
  return out + "}";
}

BodyPieces events_json(const RunSet& runs, const std::vector<int>& asked) {
  std::vector<PlaceOfEvent> places;
  std::vector<int> ids = known_ids(runs, asked);
  for (int id : ids) append_shown_events(places, runs, id, kMostEventBytes / ids.size());
  auto append = [&runs](std::string& out, PlaceOfEvent place) {
    const WatchedRun* run = runs.find(place.run);
    if (!run || place.index >= run->events().size()) return false;
    out += dumped(event_json(*run, run->events()[place.index]));
    return true;
  };
  return listed("", std::move(places), append, "");
}

std::string export_json(const RunSet& runs, size_t parts, int64_t now) {
  std::vector<int> ids = ids_of(runs);
  std::string series, lists;
  for (const auto& run : runs.runs()) {
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
      whole_body(runs_json(runs, now)), series, lists, whole_body(events_json(runs, ids)), ops,
      exported_comparisons(runs));
}

}  // namespace sextant
