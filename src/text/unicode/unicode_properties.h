// Properties of characters by the names that split patterns give them. The tables hold the answers of Hugging Face
// `tokenizers` (Unicode 16), see unicode_properties.py.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/split/code_set.h"

namespace sextant {

struct CharProperty {
  CodeSet codes;
  // General categories (L, Nd) whose union comes near to `codes`; may be empty. A regex engine that follows another
  // Unicode version can say these in few words, and then only the difference has to be spelled out.
  std::vector<std::string> near = {};
};

// \p{name}, where case, spaces, _ and - do not count: general categories, Any, ASCII, Assigned, the POSIX names and
// scripts of wide use. Nothing for any other name.
std::optional<CharProperty> unicode_property(std::string_view name);

// [[:name:]]
std::optional<CharProperty> posix_bracket(std::string_view name);

CodeSet white_space();

// Outside [...], \w, \p{Word} and \b know six more characters of Latin-1.
CharProperty word_outside_class();

// The general categories of two letters.
std::vector<std::string> leaf_categories();

// Of the cases of a letter the one with the lowest code point; another character itself.
char32_t first_case(char32_t code);

// The set with the additions of (?i): every character that is another case of one in it.
CodeSet with_other_cases(const CodeSet& codes);

// Characters that (?i) holds equal to a sequence of others: U+00DF to ss, for one.
struct CaseExpansion {
  char32_t code;
  char32_t sequence[3];  // zero after its end

  size_t size() const { return sequence[2] != 0 ? 3 : 2; }
};
std::vector<CaseExpansion> case_expansions();

}  // namespace sextant
