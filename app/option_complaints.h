// Explains errors in the options of a verb in our own words: the option, the given value, the values that it takes, and
// its purpose.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

#include "base/error.h"

namespace sextant {

// How a message of a check ends that refuses a number for its size.
constexpr std::string_view kTooLarge = " is too large a number";

// Fills in `complaint` from CLI11's, about an option of `verb`. Unchanged when the error is of another sort.
void explain_option_error(const CLI::App& verb, const std::string& verb_words, const CLI::ParseError& error,
                          Complaint& complaint);

}  // namespace sextant
