// What is wrong with a command line, as a UserError like any other: the verb, what was expected, and what to do.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "base/error.h"

namespace sextant {

// UserError when the first argument is neither an option nor a verb; it names a verb or option that was probably meant.
void refuse_unknown_verb(const CLI::App& app, int argc, char** argv);

// The verb or subcommand of that name; UserError names what there is.
const CLI::App& subcommand_named(const CLI::App& app, const std::string& name);

// CLI11's complaint about the verb that `app` was parsing.
UserError usage_error(const CLI::App& app, const CLI::ParseError& error);

}  // namespace sextant
