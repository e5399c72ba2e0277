// Characters and sets of them in PCRE2's syntax.
#pragma once

#include <string>

#include "text/split/split_class.h"

namespace sextant {

std::string spell_char(char32_t code);

// Where PCRE2's general categories, which follow the Unicode version it was built with, differ from those of the set:
enum class Spelling {
  exact,  // the differing characters are named, which makes matching slower
  quick,  // they are matched wrongly
};

struct SpelledClass {
  std::string text;       // one unit that a quantifier may follow
  CodeSet wrong_on = {};  // empty for Spelling::exact
};
SpelledClass spell_class(const CharClass& set, Spelling spelling);

}  // namespace sextant
