// `sextant watch`: the metrics and events of runs as a live page, a file, or text.
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <nlohmann/json.hpp>

#include "app/json_output.h"
#include "app/output.h"
#include "app/verbs.h"
#include "app/watch_options.h"
#include "base/error.h"
#include "base/files.h"
#include "base/printable.h"
#include "base/program_folder.h"
#include "base/text_style.h"
#include "laws/quantity.h"
#include "train/health/stop.h"
#include "train/metrics.h"
#include "watch/csv_export.h"
#include "watch/page.h"
#include "watch/run_json.h"
#include "watch/tensorboard.h"
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
  StopRequest stop;  // before the address is printed: who reads it may end us at once
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
  auto start = std::chrono::steady_clock::now();
  server.serve([&] {
    std::chrono::duration<double> since = std::chrono::steady_clock::now() - start;
    return stop.asked() || (a.stop_after > 0 && since.count() >= a.stop_after);
  });
}

void say_written(const WatchArguments& a, const std::string& file, const RunSet& runs) {
  if (a.json)
    print_json({{"file", file}, {"runs", runs.runs().size()}});
  else if (a.verbosity != Verbosity::quiet)
    fmt::print("{}\n", printable(file));
}

void export_runs(const WatchArguments& a) {
  RunSet runs = loaded_runs(a);
  write_file_atomically(a.export_page, exported_page(export_json(runs, kExportParts, std::time(nullptr))));
  say_written(a, a.export_page, runs);
}

void convert_runs(const WatchArguments& a) {
  RunSet runs = loaded_runs(a);
  write_tensorboard(runs, a.tensorboard);
  say_written(a, a.tensorboard, runs);
}

// By a script, whose place this process takes: the services' packages are Python's.
void forward_runs(const WatchArguments& a) {
  std::string script = (program_folder("adapters") / "forward.py").string();
  std::vector<std::string> words{"python3", script, a.forward};
  words.insert(words.end(), a.directories.begin(), a.directories.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  run_set_of(a);  // refuses what is no directory
  std::fflush(nullptr);
  ::execvp(pointers[0], pointers.data());
  throw RunError("--forward", fmt::format("python3 cannot be started: {}", ::strerror(errno)),
                 "Python 3.11 or newer must be on the path");
}

size_t terminal_width() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 30) return size.ws_col;
  return 80;
}

bool any_run_has(const RunSet& runs, std::string_view field) {
  return std::ranges::any_of(runs.runs(), [&](const auto& run) { return run->columns().column(field) != nullptr; });
}

void require_fields(const WatchArguments& a, const RunSet& runs) {
  for (const std::string& field : a.fields)
    if (!any_run_has(runs, field))
      throw UserError({.place = "--field " + printable(field),
                       .got = "no run has this field",
                       .hint = "docs/metrics.md lists the fields of metrics.jsonl"});
}

void write_table(const WatchArguments& a) {
  RunSet runs = loaded_runs(a);
  require_fields(a, runs);
  write_file_atomically(a.csv, csv_of_runs(runs, a.fields));
  say_written(a, a.csv, runs);
}

std::vector<std::string> fields_to_plot(const WatchArguments& a, const RunSet& runs) {
  require_fields(a, runs);
  std::vector<std::string> fields = a.fields;
  if (fields.empty())
    for (const char* field : {"loss", "validation_loss", "grad_norm", "lr", "tokens_per_s"})
      if (any_run_has(runs, field)) fields.emplace_back(field);
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
    auto list = nlohmann::ordered_json::parse(whole_body(runs_json(runs, std::time(nullptr)))).at("runs");
    return print_json({{"runs", list}});
  }
  XAxis axis = *x_axis_named(a.x);
  if (std::ranges::none_of(runs.runs(), [&](const auto& run) { return run->columns().has_axis(axis); }))
    throw UserError({.place = "--x " + a.x,
                     .got = "no line of metrics.jsonl has model_flops",
                     .expected = "runs of a version of sextant that writes it",
                     .hint = "step, tokens and seconds are in every run"});
  SeriesRange range{.axis = axis, .parts = 600};
  TextPlot plot{.title = {},
                .x_name = a.x,
                .x_text = axis == XAxis::flops ? human_flops : std::function<std::string(double)>(),
                .width = a.width > 0 ? static_cast<size_t>(a.width) : terminal_width(),
                .braille = terminal_has_utf8(),
                .colours = colours_of(STDOUT_FILENO)};
  for (const std::string& field : fields) {
    std::vector<TextCurve> curves;
    for (size_t i = 0; i < runs.runs().size(); ++i) {
      const WatchedRun& run = *runs.runs()[i];
      if (const MetricColumn* column = run.columns().column(field); column && run.columns().has_axis(axis))
        curves.push_back({decimated(run.columns(), *column, range), printable(run.name()), i});
    }
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
    case WatchMode::csv:
      return write_table(a);
    case WatchMode::tensorboard:
      return convert_runs(a);
    case WatchMode::forward:
      return forward_runs(a);
  }
}

}  // namespace sextant
