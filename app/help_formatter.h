// Help pages: two columns, at most kHelpColumns wide, with what each option takes in words.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>

namespace sextant {

inline constexpr size_t kHelpColumns = 100;

// For the program and every verb below it.
void format_help_pages(CLI::App& app);

// `text` broken at blanks into lines of at most `width` characters; all but the first begin with `indent` blanks, which
// count. `begun` characters of the first line are taken.
std::string wrapped(const std::string& text, size_t width, size_t indent, size_t begun);

}  // namespace sextant
