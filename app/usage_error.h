// Errors in a command line, as a UserError like any other: the verb, what was expected, and what to do.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "base/error.h"

namespace sextant {

// UserError when a word stands where a verb or a subcommand is expected and is none; it names one that was probably
// meant. So for an option before the verb that the program does not have.
void refuse_unknown_verb(const CLI::App& app, int argc, char** argv);

// The verb or subcommand of that name; UserError names what there is.
const CLI::App& subcommand_named(const CLI::App& app, const std::string& name);

// CLI11's complaint about the verb that `app` was parsing.
UserError usage_error(const CLI::App& app, const CLI::ParseError& error);

}  // namespace sextant
