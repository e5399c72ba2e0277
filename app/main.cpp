// The command line: declares the verbs (verbs.def), runs the one that is given, and turns errors into one message and
// an exit code (base/exit_code.h).
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "app/help_formatter.h"
#include "app/old_spellings.h"
#include "app/option_rules.h"
#include "app/output.h"
#include "app/page_origin.h"
#include "app/processes.h"
#include "app/usage_error.h"
#include "app/verb.h"
#include "app/verbosity_options.h"
#include "app/version.h"
#include "base/error.h"
#include "base/printable.h"
#include "base/text_style.h"

namespace {

using namespace sextant;

void add_version(CLI::App& app, bool& asks_json) {
  CLI::Option* json = app.add_flag("--json", asks_json, "with --version: print JSON");
  CLI::Option* version =
      app.set_version_flag("--version", [json] { return json->count() > 0 ? version_json() : version_text(); });
  version->description("print the version, the commit and what the program was built with");
  json->needs(version);
}

ExitCode parse_and_run(int argc, char** argv, Processes& processes) {
  auto start = std::chrono::steady_clock::now();
  CLI::App app("Sextant plans, trains and watches large language models.", "sextant");
  app.require_subcommand(1);
  bool asks_json = false;
  add_version(app, asks_json);
  ExitCode exit_code = ExitCode::finished;
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  refuse_old_spelling(words);
  VerbContext context{.processes = processes, .program = app, .command = command_text(words)};
  declare_verbs(app, context, exit_code);
  add_verbosity_to_all(app);
  refuse_unknown_verb(app, argc, argv);
  refuse_numbers_too_large(app);
  refuse_values_of_flags(app);
  format_help_pages(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) throw usage_error(app, error);
    app.exit(error);  // prints the help or the version
  }
  flush_standard_output();
  if (asks_for_verbose(app) && processes.leads()) {
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    fmt::print(stderr, "{}\n", resources_used(took.count()));
  }
  return exit_code;
}

// On standard error, which may be closed: nothing throws here.
void tell(const std::string& text) {
  std::string name = styled("sextant:", TextStyle::bad, colours_of(STDERR_FILENO));
  std::fflush(stdout);  // in a log of both, what was said before stands before
  std::fputs((name + " " + text + "\n").c_str(), stderr);
}

// The last catch: one message and an exit code for whatever escapes.
ExitCode run_and_report(int argc, char** argv, Processes& processes) {
  try {
    return parse_and_run(argc, argv, processes);
  } catch (const UserError& error) {
    // All processes were given the same; one need say what is wrong with it.
    processes.wait_for_leader_report();
    tell(error.what());
    return error.exit_code();
  } catch (const RunEnded& error) {
    tell(error.what());
    processes.wait_for_failing_rank();
    return error.exit_code();
  } catch (const RunError& error) {
    tell(error.what());
    return error.exit_code();
  } catch (const std::filesystem::filesystem_error& error) {
    tell(fmt::format("{}: {}", printable(error.path1().string()), error.code().message()));
    return ExitCode::run_failed;
  } catch (const std::system_error& error) {
    // Where SIGPIPE is ignored, a reader who has seen enough (head -1) makes printing throw: that is no failure to
    // report.
    // Errors of printing begin with this text, which is fmt's.
    bool printing = std::string_view(error.what()).starts_with("cannot write to file");
    if (error.code() != std::errc::broken_pipe)
      tell(printing ? output_error(error.code().message()).what() : printable(error.what(), Newlines::kept));
    return ExitCode::run_failed;
  } catch (const std::bad_alloc&) {
    tell("out of memory");
    return ExitCode::run_failed;
  } catch (const std::exception& error) {
    tell(fmt::format("{}\n  this is a bug in sextant: please report it with the command you ran",
                     printable(error.what(), Newlines::kept)));
    return ExitCode::internal_error;
  }
}

}  // namespace

int main(int argc, char** argv) {
  // A file that grows past `ulimit -f` is to fail with an error we can report, not with a signal.
  ::signal(SIGXFSZ, SIG_IGN);
  Processes processes;
  ExitCode code = run_and_report(argc, argv, processes);
  processes.leave_with(code);
  return number_of(code);
}
