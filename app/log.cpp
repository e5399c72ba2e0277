// `sextant log`: what happened to a run, as Markdown or a page; a person's line added to it.
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/json_output.h"
#include "app/verbs.h"
#include "base/error.h"
#include "base/files.h"
#include "base/printable.h"
#include "events/run_event.h"
#include "watch/run_log.h"
#include "watch/run_set.h"

namespace sextant {

namespace {

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

}  // namespace

void log_verb(const LogArguments& a) {
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

}  // namespace sextant
