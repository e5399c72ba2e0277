// Changes that normalizers make to single characters, and how characters decompose, compose and join into graphemes.
// The tables hold the answers of Hugging Face `tokenizers`, see unicode_normal.py.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace sextant {

enum class Decomposition { canonical, compatible };

class NormalTables {
 public:
  static const NormalTables& get();  // built at the first call

  // Without Hangul syllables, which are calculated. Empty: the character stays as it is.
  std::u32string_view decomposed(char32_t code, Decomposition kind) const;
  // The order into which marks are put behind a character; 0 for all that are not marks.
  uint8_t combining(char32_t code) const { return code < combining_.size() ? combining_[code] : 0; }
  // 0 where the two do not compose.
  char32_t composed(char32_t first, char32_t second) const;

  bool composes_with_previous(char32_t code) const { return code < seconds_.size() && seconds_[code]; }
  bool is_composite(char32_t code) const { return code < composites_.size() && composites_[code]; }

 private:
  NormalTables();

  struct Text {
    uint32_t at = 0, size = 0;
  };
  std::vector<Text> canonical_, compatible_;  // by code point
  std::vector<uint8_t> combining_;
  std::unordered_map<uint64_t, char32_t> compositions_;
  std::vector<bool> seconds_, composites_;
};

// How a character joins its neighbours into a grapheme.
enum class GraphemeKind : uint8_t { other, joins_previous, control, joins_next };
GraphemeKind grapheme_kind(char32_t code);

// A change of single characters: each with the text that takes its place. Those not named stay.
using CharacterMap = std::vector<std::pair<char32_t, std::string>>;
CharacterMap lowercase_map();
CharacterMap nmt_map();
CharacterMap accents_map();  // all marks go
CharacterMap bert_clean_map();
CharacterMap bert_chinese_map();
CharacterMap bert_accents_map();  // marks without a width of their own go

}  // namespace sextant
