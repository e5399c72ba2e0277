// --quiet and --verbose, for verbs that say more than their result.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "base/verbosity.h"

namespace sextant {

inline CLI::Option* add_quiet(CLI::App& verb, Verbosity& verbosity, const std::string& about) {
  return verb.add_flag_callback(
      "-q,--quiet", [&verbosity] { verbosity = Verbosity::quiet; }, about);
}

inline CLI::Option* add_verbose(CLI::App& verb, Verbosity& verbosity, const std::string& about) {
  return verb.add_flag_callback(
      "-v,--verbose", [&verbosity] { verbosity = Verbosity::verbose; }, about);
}

}  // namespace sextant
