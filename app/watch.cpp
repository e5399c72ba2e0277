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

#include "app/given_options.h"
#include "app/json_output.h"
#include "app/output.h"
#include "app/output_file.h"
#include "app/verb.h"
#include "app/verbosity_options.h"
#include "app/watch_options.h"
#include "base/error.h"
#include "base/files.h"
#include "base/printable.h"
#include "base/program_folder.h"
#include "base/text_style.h"
#include "base/verbosity.h"
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

struct WatchArguments {
  std::vector<std::string> directories;
  std::string host;       // empty: this machine alone
  int64_t port = 6789;    // 0: any that is free
  double stop_after = 0;  // seconds; 0: when it is interrupted
  bool text = false;
  std::vector<std::string> fields;  // empty: those that fit the mode
  std::string x = "step";
  int64_t width = 0;        // characters; 0: the terminal's
  std::string export_page;  // an HTML file to write
  std::string csv;          // a file to write
  std::string tensorboard;  // a folder to write event files to
  std::string forward;      // a service to hand runs on to
  bool json = false;
  Verbosity verbosity = Verbosity::usual;
};

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

void add_watch_options(CLI::App& verb, WatchArguments& a) {
  verb.add_option("directories", a.directories, "runs (train --out), or folders of runs")->required();
  verb.add_option("--port", a.port, "of the page; 0 = any that is free")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  verb.add_option("--host", a.host,
                  "address to listen on, such as 0.0.0.0; the page then needs the token of the address that is "
                  "printed [127.0.0.1, without a token]");
  verb.add_option("--stop-after", a.stop_after, "end after so many seconds [when it is interrupted]")
      ->check(CLI::Range(0.001, 1e9));
  verb.add_flag("--text", a.text, "print the curves and end");
  verb.add_option("--field", a.fields,
                  "of --text and --csv: a field of metrics.jsonl, may be repeated [of --text: loss, validation_loss, "
                  "grad_norm, lr, tokens_per_s; of --csv: all]");
  verb.add_option("--x", a.x,
                  "of --text: what is drawn over; seconds are those spent in steps, flops the sum of model_flops")
      ->check(CLI::IsMember({"step", "tokens", "seconds", "flops"}))
      ->capture_default_str();
  verb.add_option("--width", a.width, "of --text, in characters [the terminal's]")->check(CLI::Range(30, 1000));
  verb.add_option("--html", a.export_page, "write the page to this HTML file, with decimated curves, and end")
      ->check(output_file("--html"));
  verb.add_option("--csv", a.csv, "write all values to this file and end")->check(output_file("--csv"));
  verb.add_option("--tensorboard", a.tensorboard, "write event files of TensorBoard into this folder and end");
  verb.add_option("--forward", a.forward,
                  "follow the runs into this service until they end, by the Python package of that name")
      ->check(CLI::IsMember({"wandb", "mlflow"}));
  verb.add_flag("--json", a.json, "print JSON: the address of the page, the file, or the last values of each run");
  add_quiet(verb, a.verbosity, "no remarks on standard error");
}

void run_watch(const WatchArguments& a, VerbContext& context) {
  std::vector<std::string> given = given_options(*context.verb, watch_options());
  WatchMode mode = watch_mode(given);
  refuse_unused(watch_options(), static_cast<size_t>(mode), given);
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

constexpr ValueFormat kWatchValues[] = {
    {"SECONDS", "seconds", "--stop-after"},
    {"COLUMNS", "columns", "--width"},
    {"PORT", "", "--port"},
    {"FILE", "the name of a file to write", "--csv"},
    {"DIR", "a directory", "--tensorboard"},
    {"ADDRESS", "an address of this machine, such as 0.0.0.0", "--host"},
    {"FIELD", "a field of metrics.jsonl, such as loss", "--field"},
};

}  // namespace

const VerbDef watch_verb{
    .words = "watch",
    .summary = "Curves and events of runs: live page, file or terminal",
    .details = "",
    .examples =
        "sextant watch runs\n"
        "sextant watch runs/longer --text --field loss\n"
        "sextant watch runs --html runs.html\n"
        "sextant watch runs --csv runs.csv --field loss\n"
        "sextant watch runs --tensorboard tensorboard",
    .values = kWatchValues,
    .declare = declare_verb<add_watch_options, run_watch>,
};

}  // namespace sextant
