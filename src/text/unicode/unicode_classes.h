// Kinds of characters as split patterns know them (\p{L}, \p{N}, \s), word characters (\w) and punctuation.
// Enters: a code point. The tables hold the answers of Hugging Face `tokenizers` (Unicode 16), see unicode_classes.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sextant {

enum class CharKind : uint8_t { other, letter, number, space };

class UnicodeKinds {
 public:
  static const UnicodeKinds& get();  // built at the first call

  CharKind of_ascii(uint8_t byte) const { return kinds_[byte]; }
  CharKind of(char32_t code) const { return code < kinds_.size() ? kinds_[code] : CharKind::other; }

 private:
  UnicodeKinds();

  std::vector<CharKind> kinds_;  // one per code point, up to the last that is not `other`
};

bool is_word_character(char32_t code);
bool is_punctuation(char32_t code);

}  // namespace sextant
