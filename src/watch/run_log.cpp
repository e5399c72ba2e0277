#include "watch/run_log.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "train/metrics.h"
#include "view/page.h"
#include "watch/curve_svg.h"

namespace sextant {

namespace {

// What stands in one row of the log.
struct LogEntry {
  std::string time, step, event, loss, text;
};

std::string loss_text(const RunColumns& columns, const RunEvent& event) {
  const MetricColumn* loss = columns.column("loss");
  if (!event.step || !loss || columns.rows() == 0) return "";
  size_t row = columns.row_of_step(*event.step);
  if (row >= columns.rows() || columns.x(XAxis::step, row) != static_cast<double>(*event.step)) return "";
  size_t i = loss->first_at_or_after(row);
  bool there = i < loss->size() && loss->row(i) == row && !std::isnan(loss->value(i));
  return there ? fmt::format("{:.4f}", loss->value(i)) : "";
}

// "2026-11-17 18:03:54"
std::string time_text(std::string_view time) {
  std::string text(time.substr(0, time.find('.')));
  for (char& c : text)
    if (c == 'T') c = ' ';
  return text;
}

std::vector<LogEntry> entries_of(const WatchedRun& run) {
  std::vector<LogEntry> entries;
  for (const RunEvent& event : run.events())
    entries.push_back({time_text(event.time), event.step ? std::to_string(*event.step) : "",
                       std::string(name_of(event.kind)), loss_text(run.columns(), event), event.text});
  return entries;
}

// How the run stands: label and value.
std::vector<std::pair<std::string, std::string>> standing_of(const WatchedRun& run, int64_t now) {
  const RunColumns& columns = run.columns();
  std::vector<std::pair<std::string, std::string>> facts{{"state", std::string(name_of(run.state(now)))}};
  if (columns.rows() == 0) return facts;
  size_t last = columns.rows() - 1;
  facts.emplace_back("step", human_count(static_cast<int64_t>(columns.x(XAxis::step, last))));
  facts.emplace_back("tokens", human_count(static_cast<int64_t>(columns.x(XAxis::tokens, last))));
  facts.emplace_back("time in steps", human_duration(columns.x(XAxis::seconds, last)));
  for (const char* field : {"loss", "validation_loss", "bits_per_byte"})
    if (auto value = columns.last(field)) facts.emplace_back(field, fmt::format("{:.4f}", *value));
  if (auto value = columns.last("tokens_per_s"))
    facts.emplace_back("tokens/s", human_count(static_cast<int64_t>(*value)));
  return facts;
}

// Texts of others must not become markup of the table.
std::string cell_text(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '\n' || c == '\r') {
      out += ' ';
      continue;
    }
    if (std::string_view("|\\`*<>[]").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

std::string run_log_markdown(const WatchedRun& run, int64_t now) {
  std::string out = fmt::format("# {}\n\n", cell_text(run.name()));
  for (const auto& [name, value] : standing_of(run, now)) out += fmt::format("- {}: {}\n", cell_text(name), value);
  out += "\n| time (UTC) | step | loss | event | text |\n|---|---|---|---|---|\n";
  for (const LogEntry& entry : entries_of(run))
    out += fmt::format("| {} | {} | {} | {} | {} |\n", cell_text(entry.time), entry.step, entry.loss,
                       cell_text(entry.event), cell_text(entry.text));
  return out;
}

std::string run_log_html(const WatchedRun& run, int64_t now) {
  Page page(run.name());
  std::vector<PageFigure> figures;
  for (const auto& [name, value] : standing_of(run, now))
    figures.push_back({value, name, value == name_of(WatchedState::failed) ? Mood::bad : Mood::plain});
  page.figures(figures);
  page.section("Curves");
  std::vector<std::string> curves;
  for (const char* field : {"loss", "validation_loss", "grad_norm", "lr", "tokens_per_s", "step_s"})
    if (const MetricColumn* column = run.columns().column(field)) curves.push_back(curve_svg(run, *column));
  page.pictures(curves, "Vertical lines are events of the table below.");
  page.section("Events");
  PageTable table{.heads = {{"time (UTC)", true}, {"step"}, {"loss"}, {"event", true}, {"text", true}}, .rows = {}};
  for (const LogEntry& entry : entries_of(run))
    table.rows.push_back({entry.time, entry.step, entry.loss, entry.event, entry.text});
  page.table(table);
  return std::move(page).finish();
}

std::string run_log_json(const WatchedRun& run, int64_t now) {
  using Json = nlohmann::ordered_json;
  Json json{{"run", run.name()}, {"state", name_of(run.state(now))}, {"events", Json::array()}};
  for (const RunEvent& event : run.events()) json["events"].push_back(Json::parse(event_line(event)));
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace sextant
