// `sextant log`: what happened to a run, as Markdown or a page; a person's line added to it.
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/json_output.h"
#include "app/output_file.h"
#include "app/verb.h"
#include "app/verbosity_options.h"
#include "base/error.h"
#include "base/files.h"
#include "base/printable.h"
#include "base/verbosity.h"
#include "events/run_event.h"
#include "watch/run_log.h"
#include "watch/run_set.h"

namespace sextant {

namespace {

struct LogArguments {
  std::string directory;
  std::string note;  // a line to add; empty: none
  std::string html;  // a file to write
  bool json = false;
  Verbosity verbosity = Verbosity::usual;
};

void add_note(const LogArguments& a) {
  if (!is_run_directory(a.directory))
    throw UserError({.place = printable(a.directory),
                     .got = "not a run's directory",
                     .expected = "a directory with metrics.jsonl or events.jsonl (train --out)"});
  RunEvent note{.kind = EventKind::note, .time = utc_now(), .text = a.note};
  append_event(a.directory, note);
  if (a.json)
    print_json(nlohmann::ordered_json::parse(event_line(note)));
  else if (a.verbosity != Verbosity::quiet)
    fmt::print("{} {}\n", note.time, printable(note.text));
}

void add_log_options(CLI::App& verb, LogArguments& a) {
  auto has_text = [](const std::string& text) { return std::string(text.empty() ? "the value is empty" : ""); };
  verb.add_option("directory", a.directory, "the run's --out directory")->required();
  CLI::Option* note = verb.add_option("--note", a.note, "add this line to the run's events.jsonl")->check(has_text);
  CLI::Option* html = verb.add_option("--html", a.html, "write it as a page with curves to this file")
                          ->check(has_text)
                          ->check(output_file("--html"));
  note->excludes(html);
  verb.add_flag("--json", a.json, "print JSON");
  add_quiet(verb, a.verbosity, "with --note or --html: print nothing");
}

void run_log(const LogArguments& a) {
  if (!a.note.empty()) return add_note(a);
  RunSet runs({a.directory});
  runs.read_all();
  if (runs.runs().size() != 1)
    throw UserError({.place = printable(a.directory),
                     .got = runs.runs().empty() ? "not a run's directory" : "a folder of several runs",
                     .expected = "the directory of one run (train --out)"});
  const WatchedRun& run = *runs.runs().front();
  int64_t now = std::time(nullptr);
  if (!a.html.empty()) write_file_atomically(a.html, run_log_html(run, now));
  if (a.json) {
    auto json = nlohmann::ordered_json::parse(run_log_json(run, now));
    if (!a.html.empty()) json["file"] = a.html;
    return print_json(json);
  }
  if (a.html.empty())
    fmt::print("{}", run_log_markdown(run, now));
  else if (a.verbosity != Verbosity::quiet)
    fmt::print("{}\n", printable(a.html));
}

constexpr ValueFormat kLogValues[] = {
    {"RUN", "the --out directory of a run", "directory"},
    {"TEXT", "a text", "--note"},
};

}  // namespace

const VerbDef log_verb{
    .words = "log",
    .summary = "The chronicle of a run as Markdown or a page",
    .details = "It has the events of the run and its state",
    .examples =
        "sextant log runs/longer --note 'lowered the learning rate'\n"
        "sextant log runs/longer > chronicle.md\n"
        "sextant log runs/longer --html chronicle.html",
    .values = kLogValues,
    .declare = declare_verb<add_log_options, run_log>,
};

}  // namespace sextant
