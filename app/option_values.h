// The values that each option takes, in words: the placeholder that help and manual pages show, and the noun phrase
// after "expected" in a complaint. Units and formats come from VerbDef::values and, for options that several verbs
// take, from a table here; sets of words and bounds of numbers are read from the option's own declaration.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace sextant {

struct OptionValue {
  std::string placeholder;         // "DAYS", "FILE", "auto|cpu|cuda"; empty for a flag
  std::string expected;            // "a number of days from 0.000001 to 1000000"
  std::string bounds;              // of a number: "from 1 to 1024", "of at least 1"; empty: any
  std::vector<std::string> words;  // the fixed set, where there is one
};

// `verb_words` names the verb that has the option: "bench gemm".
OptionValue value_of(const CLI::Option& option, const std::string& verb_words);

// "1 - 1e+06", "0.001000 to 3600.000000" in words; empty when it is neither.
std::string bounds_in_words(const std::string& bounds);

}  // namespace sextant
