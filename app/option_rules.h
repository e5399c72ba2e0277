// Rules for the options of all verbs, which CLI11 does not have.
#pragma once

#include <CLI/CLI.hpp>

namespace sextant {

// CLI11 reads what does not fit an integer as the largest one.
void refuse_numbers_too_large(CLI::App& app);

// A switch is given or not: --json=0 would read as given.
void refuse_values_of_flags(CLI::App& app);

}  // namespace sextant
