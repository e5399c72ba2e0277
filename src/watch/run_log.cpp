#include "watch/run_log.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "base/units.h"
#include "train/metrics.h"
#include "view/page.h"
#include "watch/curve_svg.h"
#include "watch/field_label.h"

namespace sextant {

namespace {

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

// A supervisor records a restart when it sees the run go on, which may be some checkpoints later: it is told behind the
// failure that it answers.
std::vector<LogEntry> entries_of(const WatchedRun& run) {
  std::vector<LogEntry> entries;
  size_t behind_failure = 0;
  for (const RunEvent& event : run.events()) {
    LogEntry entry{time_text(event.time), event.step ? std::to_string(*event.step) : "",
                   std::string(name_of(event.kind)), loss_text(run.columns(), event), event.text};
    size_t at = event.kind == EventKind::restart && behind_failure > 0 ? behind_failure : entries.size();
    entries.insert(entries.begin() + static_cast<ptrdiff_t>(at), std::move(entry));
    if (event.kind == EventKind::failure) behind_failure = entries.size();
    if (event.kind == EventKind::restart) behind_failure = 0;
  }
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
    if (auto value = columns.last(field)) facts.emplace_back(field_label(field), fmt::format("{:.4f}", *value));
  if (auto value = columns.last("tokens_per_s"))
    facts.emplace_back("tokens/s", human_count(static_cast<int64_t>(*value)));
  return facts;
}

// Checkpoints that follow each other are one entry, at the last of them: what happened stands out.
std::vector<LogEntry> without_checkpoint_rows(std::vector<LogEntry> entries) {
  std::string_view checkpoint = name_of(EventKind::checkpoint);
  std::vector<LogEntry> kept;
  for (size_t i = 0; i < entries.size();) {
    size_t end = i + 1;
    while (end < entries.size() && entries[i].event == checkpoint && entries[end].event == checkpoint) ++end;
    kept.push_back(entries[end - 1]);
    if (end - i > 1)
      kept.back().text =
          fmt::format("{} checkpoints, of steps {} to {}", end - i, entries[i].step, entries[end - 1].step);
    i = end;
  }
  return kept;
}

std::string times_text(size_t count, std::string_view once, std::string_view often) {
  return count == 1 ? std::string(once) : fmt::format("{} {}", count, often);
}

// How the run stands and what it went through, as sentences.
std::string summary_of(const WatchedRun& run, int64_t now) {
  const RunColumns& columns = run.columns();
  std::string out = fmt::format("The run is {}", name_of(run.state(now)));
  if (columns.rows() > 0) {
    size_t last = columns.rows() - 1;
    out += fmt::format(" at step {}, after {} tokens and {} of steps",
                       human_count(static_cast<int64_t>(columns.x(XAxis::step, last))),
                       human_count(static_cast<int64_t>(columns.x(XAxis::tokens, last))),
                       human_duration(columns.x(XAxis::seconds, last)));
    if (auto loss = columns.last("loss")) out += fmt::format(", with a loss of {:.4f}", *loss);
    if (auto loss = columns.last("validation_loss")) out += fmt::format(" (validation {:.4f})", *loss);
  }
  out += ".";
  std::vector<std::string> parts;
  auto count = [&](EventKind kind, std::string_view once, std::string_view often) {
    auto times = static_cast<size_t>(std::ranges::count(run.events(), kind, &RunEvent::kind));
    if (times > 0) parts.push_back(times_text(times, once, often));
  };
  count(EventKind::failure, "a failure", "failures");
  count(EventKind::restart, "a restart", "restarts");
  count(EventKind::config_change, "a change of its config", "changes of its config");
  count(EventKind::spike, "a spike", "spikes");
  count(EventKind::rewind, "a rewind", "rewinds");
  count(EventKind::drift, "a drift of its pace", "drifts of its pace");
  if (!parts.empty()) out += fmt::format(" It had {}.", fmt::join(parts, ", "));
  return out;
}

// Texts of others must not become markup, nor move the cursor of the terminal that shows them.
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
  return without_controls(out);
}

}  // namespace

std::string run_log_markdown(const WatchedRun& run, int64_t now) {
  std::string out = fmt::format("# {}\n\n{}\n", cell_text(run.name()), summary_of(run, now));
  std::string day;
  for (const LogEntry& entry : without_checkpoint_rows(entries_of(run))) {
    if (std::string of_entry = entry.time.substr(0, entry.time.find(' ')); of_entry != day) {
      day = of_entry;
      out += fmt::format("\n## {}\n\n", cell_text(day));
    }
    std::string time = entry.time.substr(std::min(entry.time.size(), entry.time.find(' ') + 1));
    out += fmt::format("- {}", cell_text(time));
    if (!entry.step.empty()) out += fmt::format(", step {}", entry.step);
    if (!entry.loss.empty()) out += fmt::format(", loss {}", entry.loss);
    out += fmt::format(": **{}**: {}\n", cell_text(entry.event), cell_text(entry.text));
  }
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
  page.pictures(curves, "Over steps. Vertical lines are events of the table below.");
  page.section("Events");
  PageTable table{.heads = {{"time (UTC)", true}, {"step"}, {"loss"}, {"event", true}, {"text", true}},
                  .rows = {},
                  .ends_in_text = true};
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
