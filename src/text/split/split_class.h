// Escapes and [...] that match one character in a split pattern, read as Oniguruma reads them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "text/split/split_reader.h"
#include "text/unicode/unicode_properties.h"

namespace sextant {

struct CharClass {
  CodeSet codes;
  std::vector<std::string> near = {};  // as in CharProperty, for all of `codes` that is not in `named`
  CodeSet named = {};                  // those given one by one or as ranges
  bool negated = false;                // it matches what is not in `codes`
};

enum class ClassPlace { outside, inside };

// The reader stands behind a backslash. Each takes an escape of its kind and returns nothing for any other.
std::optional<char32_t> escaped_char(PatternReader& reader);
std::optional<CharClass> escaped_set(PatternReader& reader, ClassPlace where);

// The reader stands behind a backslash and an escape that is not supported begins there.
[[noreturn]] void refuse_escape(const PatternReader& reader);

// The reader stands behind the [ of a class. Takes it up to its ].
CharClass bracket_class(PatternReader& reader);

}  // namespace sextant
