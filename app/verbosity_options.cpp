#include "app/verbosity_options.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include "base/units.h"

namespace sextant {

namespace {

constexpr const char* kQuiet = "--quiet";
constexpr const char* kVerbose = "--verbose";
const std::string kResources = "at the end, time and memory used, on standard error";
const std::string kAlwaysQuiet = "print the result alone, as this verb always does";

}  // namespace

CLI::Option* add_quiet(CLI::App& verb, Verbosity& verbosity, const std::string& about) {
  return verb.add_flag_callback(
      "-q,--quiet", [&verbosity] { verbosity = Verbosity::quiet; }, about);
}

CLI::Option* add_verbose(CLI::App& verb, Verbosity& verbosity, const std::string& about) {
  return verb.add_flag_callback(
      "-v,--verbose", [&verbosity] { verbosity = Verbosity::verbose; }, fmt::format("{}; {}", about, kResources));
}

void add_verbosity_to_all(CLI::App& app) {
  for (CLI::App* verb : app.get_subcommands(nullptr)) add_verbosity_to_all(*verb);
  bool does_something = app.get_parent() && app.get_subcommands(nullptr).empty();
  if (!does_something) return;
  CLI::Option* quiet = app.get_option_no_throw(kQuiet);
  if (!quiet) quiet = app.add_flag("-q,--quiet", kAlwaysQuiet);
  if (!app.get_option_no_throw(kVerbose)) app.add_flag("-v,--verbose", kResources)->excludes(quiet);
}

bool is_verbosity_option(const std::string& name) {
  return name == kQuiet || name == kVerbose;
}

bool asks_for_verbose(const CLI::App& app) {
  const CLI::App* verb = &app;
  while (!verb->get_subcommands().empty()) verb = verb->get_subcommands().front();
  const CLI::Option* option = verb->get_option_no_throw(kVerbose);
  return option && option->count() > 0;
}

std::string resources_used(double seconds) {
  struct rusage used {};
  ::getrusage(RUSAGE_SELF, &used);
  constexpr int64_t kKilobyte = 1024;  // Linux counts in these
  return fmt::format("took {}, {} of memory at most", human_duration(seconds),
                     human(Bytes{used.ru_maxrss * kKilobyte}));
}

}  // namespace sextant
