// --quiet and --verbose, which every verb takes: --quiet leaves the result alone, --verbose adds what the verb used.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "base/verbosity.h"

namespace sextant {

// For verbs that say more than their result; `about` says what is left out.
CLI::Option* add_quiet(CLI::App& verb, Verbosity& verbosity, const std::string& about);
CLI::Option* add_verbose(CLI::App& verb, Verbosity& verbosity, const std::string& about);

// Gives those of the two that it lacks to every verb that does something.
void add_verbosity_to_all(CLI::App& app);

// Whether an option is one of the two, by its name as CLI11 gives it.
bool is_verbosity_option(const std::string& name);

// Of the verb that was parsed.
bool asks_for_verbose(const CLI::App& app);

// "took 1.3 s, 45.20 MiB of memory at most"
std::string resources_used(double seconds);

}  // namespace sextant
