// `sextant watch`: the metrics and events of runs as a live page, a file, or text.
#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>

#include "app/json_output.h"
#include "app/verbs.h"
#include "app/watch_options.h"
#include "base/error.h"
#include "base/files.h"
#include "base/printable.h"
#include "base/text_style.h"
#include "train/health/stop.h"
#include "train/metrics.h"
#include "watch/page.h"
#include "watch/run_json.h"
#include "watch/text_plot.h"
#include "watch/watch_server.h"

namespace sextant {

namespace {

constexpr size_t kExportParts = 500;  // of each curve of an exported page

RunSet run_set_of(const WatchArguments& a) {
  return RunSet({a.directories.begin(), a.directories.end()});
}

RunSet loaded_runs(const WatchArguments& a) {
  RunSet runs = run_set_of(a);
  runs.read_all();
  if (runs.runs().empty())
    throw UserError({.place = printable(a.directories.front()),
                     .got = "no run found",
                     .expected = "a directory with metrics.jsonl or events.jsonl, or a folder of such"});
  return runs;
}

void serve_runs(const WatchArguments& a) {
  RunSet runs = run_set_of(a);
  runs.rescan();
  bool is_local = a.host.empty();
  Access access = is_local ? Access::loopback() : Access::with_token(random_token());
  std::string query = is_local ? "" : "?token=" + access.token(), host = is_local ? "127.0.0.1" : a.host;
  WatchServer server(runs, access, host, static_cast<int>(a.port));
  bool is_ipv6 = host.find(':') != host.npos;
  std::string url = fmt::format("http://{}:{}/{}", is_ipv6 ? "[" + host + "]" : host, server.port(), query);
  if (a.json)
    print_json({{"url", url}, {"runs", runs.runs().size()}});
  else
    fmt::print("{}\n", url);
  std::fflush(stdout);
  if (!a.json && a.verbosity != Verbosity::quiet)
    fmt::print(stderr, "{} run{}; Ctrl-C ends it\n", runs.runs().size(), runs.runs().size() == 1 ? "" : "s");
  StopRequest stop;
  auto start = std::chrono::steady_clock::now();
  server.serve([&] {
    std::chrono::duration<double> since = std::chrono::steady_clock::now() - start;
    return stop.asked() || (a.stop_after > 0 && since.count() >= a.stop_after);
  });
}

void export_runs(const WatchArguments& a) {
  RunSet runs = loaded_runs(a);
  write_file_atomically(a.export_page, exported_page(export_json(runs, kExportParts, std::time(nullptr))));
  if (a.json)
    print_json({{"file", a.export_page}, {"runs", runs.runs().size()}});
  else if (a.verbosity != Verbosity::quiet)
    fmt::print("{}\n", printable(a.export_page));
}

size_t terminal_width() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 30) return size.ws_col;
  return 80;
}

bool terminal_has_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"})
    if (const char* value = std::getenv(name); value && *value) {
      std::string_view locale = value;
      return locale.find("UTF-8") != locale.npos || locale.find("utf8") != locale.npos;
    }
  return false;
}

std::vector<std::string> fields_to_plot(const WatchArguments& a, const RunSet& runs) {
  auto has = [&](std::string_view field) {
    return std::ranges::any_of(runs.runs(), [&](const auto& run) { return run->columns().column(field) != nullptr; });
  };
  std::vector<std::string> fields;
  for (const std::string& field : a.fields) {
    if (!has(field))
      throw UserError({.place = "--field " + printable(field),
                       .got = "no run has this field",
                       .hint = "docs/metrics.md lists the fields of metrics.jsonl"});
    fields.push_back(field);
  }
  if (fields.empty())
    for (const char* field : {"loss", "validation_loss", "grad_norm", "lr", "tokens_per_s"})
      if (has(field)) fields.emplace_back(field);
  return fields;
}

std::string unit_of(const std::string& field) {
  for (const MetricField& known : metric_fields())
    if (known.name == field && !known.unit.empty()) return fmt::format(" ({})", known.unit);
  return "";
}

void plot_runs(const WatchArguments& a) {
  RunSet runs = loaded_runs(a);
  std::vector<std::string> fields = fields_to_plot(a, runs);
  if (a.json) {
    auto list = nlohmann::ordered_json::parse(runs_json(runs, std::time(nullptr))).at("runs");
    return print_json({{"runs", list}});
  }
  SeriesRange range{.axis = *x_axis_named(a.x), .parts = 600};
  TextPlot plot{.title = {},
                .x_name = a.x,
                .width = a.width > 0 ? static_cast<size_t>(a.width) : terminal_width(),
                .braille = terminal_has_utf8(),
                .colours = colours_of(STDOUT_FILENO)};
  for (const std::string& field : fields) {
    std::vector<TextCurve> curves;
    for (const auto& run : runs.runs())
      if (const MetricColumn* column = run->columns().column(field))
        curves.push_back({decimated(run->columns(), *column, range), printable(run->name())});
    // Without colours curves of several runs cannot be told apart, so each has a picture.
    bool together = plot.colours == Colours::on || curves.size() == 1;
    for (size_t i = 0; i < curves.size(); i += together ? curves.size() : 1) {
      std::vector<TextCurve> drawn = together ? curves : std::vector<TextCurve>{curves[i]};
      plot.title = field + unit_of(field);
      for (size_t c = 0; c < drawn.size(); ++c)
        if (!drawn[c].points.y.empty())
          plot.title += fmt::format("{} {} {:.5g}", c == 0 ? ":" : ",", drawn[c].name, drawn[c].points.y.back());
      fmt::print("{}\n", text_plot(drawn, plot));
    }
  }
}

}  // namespace

void watch_verb(const WatchArguments& a) {
  WatchMode mode = watch_mode(a.given);
  refuse_unused(watch_options(), static_cast<size_t>(mode), a.given);
  switch (mode) {
    case WatchMode::serve:
      return serve_runs(a);
    case WatchMode::text:
      return plot_runs(a);
    case WatchMode::export_page:
      return export_runs(a);
  }
}

}  // namespace sextant
