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

// Properties that the patterns of later models distinguish; a character may have several.
struct CharTraits {
  uint8_t bits = 0;

  constexpr bool any_of(CharTraits other) const { return (bits & other.bits) != 0; }
  constexpr CharTraits operator|(CharTraits other) const { return {static_cast<uint8_t>(bits | other.bits)}; }
};
inline constexpr CharTraits kBeginsWord{1};        // [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]
inline constexpr CharTraits kGoesOnInWord{2};      // [\p{Ll}\p{Lm}\p{Lo}\p{M}]
inline constexpr CharTraits kLetter{4};            // \p{L}
inline constexpr CharTraits kMark{8};              // \p{M}
inline constexpr CharTraits kSign{16};             // [\p{P}\p{S}]
inline constexpr CharTraits kPunctuationMark{32};  // to the Punctuation pre-tokenizer

class UnicodeTraits {
 public:
  static const UnicodeTraits& get();  // built at the first call

  CharTraits of(char32_t code) const { return code < traits_.size() ? traits_[code] : CharTraits{}; }

 private:
  UnicodeTraits();

  std::vector<CharTraits> traits_;  // one per code point, up to the last that has any
};

bool is_word_character(char32_t code);

}  // namespace sextant
