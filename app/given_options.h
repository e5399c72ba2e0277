// Names of a verb's options that are present on the command line.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "app/option_use.h"
#include "app/verbosity_options.h"
#include "base/error.h"

namespace sextant {

// UserError for an option with an empty value, which would read as one that was not given.
inline void require_values(const CLI::App& verb) {
  for (const CLI::Option* option : verb.get_options())
    if (option->count() > 0 && option->results().front().empty())
      throw UserError(
          {.place = option->get_name(), .got = "has an empty value", .hint = "leave it out, or give it one"});
}

// As require_values. BUG when the table lacks an option of the verb, given or not.
inline std::vector<std::string> given_options(const CLI::App& verb, const OptionTable& table) {
  require_values(verb);
  std::vector<std::string> given;
  for (const CLI::Option* option : verb.get_options()) {
    if (option == verb.get_help_ptr()) continue;
    std::string name = option->get_name();
    if (is_verbosity_option(name)) continue;  // every mode of every verb takes them
    table.use_of(name);
    if (option->count() > 0) given.push_back(name);
  }
  return given;
}

}  // namespace sextant
