#include "text/unicode/unicode_normal.h"

#include <span>

#include "text/split/code_set.h"
#include "text/unicode/unicode_utf8.h"

namespace sextant {

namespace {

struct CharMapping {
  char32_t code;
  uint32_t at, size;  // in kMappedText
};

struct Composition {
  char32_t first, second, composed;
};

struct CombiningRun {
  char32_t first, last;
  uint8_t order;
};

#include "text/unicode/unicode_normal.inc"

uint64_t pair_key(char32_t first, char32_t second) {
  return uint64_t{first} << 32 | second;
}

template <class T>
T& at_code(std::vector<T>& table, char32_t code) {
  if (table.size() <= code) table.resize(code + 1);
  return table[code];
}

CharacterMap map_of(std::span<const CharMapping> rows) {
  CharacterMap out;
  for (const CharMapping& row : rows) {
    std::string text;
    for (uint32_t i = 0; i < row.size; ++i) append_utf8(kMappedText[row.at + i], text);
    out.emplace_back(row.code, std::move(text));
  }
  return out;
}

template <class TextOf>
void add_ranges(std::span<const CodeRange> ranges, TextOf text_of, CharacterMap& out) {
  for (CodeRange range : ranges)
    for (char32_t code = range.first; code <= range.last; ++code) out.emplace_back(code, text_of(code));
}

std::string nothing(char32_t) {
  return "";
}

}  // namespace

NormalTables::NormalTables() {
  for (const CharMapping& row : kCanonical) at_code(canonical_, row.code) = {row.at, row.size};
  for (const CharMapping& row : kCompatible) at_code(compatible_, row.code) = {row.at, row.size};
  for (const CombiningRun& run : kCombining)
    for (char32_t code = run.first; code <= run.last; ++code) at_code(combining_, code) = run.order;
  size_t last = 0;
  for (const Composition& row : kCompositions) last = std::max<size_t>(last, std::max(row.second, row.composed));
  seconds_.resize(last + 1);
  composites_.resize(last + 1);
  for (const Composition& row : kCompositions) {
    compositions_.emplace(pair_key(row.first, row.second), row.composed);
    seconds_[row.second] = true;
    composites_[row.composed] = true;
  }
}

const NormalTables& NormalTables::get() {
  static const NormalTables tables;
  return tables;
}

std::u32string_view NormalTables::decomposed(char32_t code, Decomposition kind) const {
  Text text;
  if (kind == Decomposition::compatible && code < compatible_.size()) text = compatible_[code];
  if (text.size == 0 && code < canonical_.size()) text = canonical_[code];
  return {kMappedText + text.at, text.size};
}

char32_t NormalTables::composed(char32_t first, char32_t second) const {
  auto found = compositions_.find(pair_key(first, second));
  return found == compositions_.end() ? 0 : found->second;
}

GraphemeKind grapheme_kind(char32_t code) {
  static const std::vector<GraphemeKind> kKinds = [] {
    std::vector<GraphemeKind> kinds;
    auto fill = [&](std::span<const CodeRange> ranges, GraphemeKind kind) {
      for (CodeRange range : ranges)
        for (char32_t c = range.first; c <= range.last; ++c) at_code(kinds, c) = kind;
    };
    fill(kGraphemeJoins, GraphemeKind::joins_previous);
    fill(kGraphemeControls, GraphemeKind::control);
    fill(kGraphemePrepends, GraphemeKind::joins_next);
    return kinds;
  }();
  return code < kKinds.size() ? kKinds[code] : GraphemeKind::other;
}

CharacterMap lowercase_map() {
  return map_of(kLowercase);
}

CharacterMap nmt_map() {
  return map_of(kNmt);
}

CharacterMap accents_map() {
  CharacterMap out;
  add_ranges(kAccents, nothing, out);
  return out;
}

CharacterMap bert_accents_map() {
  CharacterMap out;
  add_ranges(kBertAccents, nothing, out);
  return out;
}

CharacterMap bert_clean_map() {
  CharacterMap out;
  add_ranges(kBertRemoved, nothing, out);
  add_ranges(
      kBertSpaces, [](char32_t) { return std::string(" "); }, out);
  return out;
}

CharacterMap bert_chinese_map() {
  CharacterMap out;
  auto apart = [](char32_t code) {
    std::string text = " ";
    append_utf8(code, text);
    return text + " ";
  };
  add_ranges(kBertChinese, apart, out);
  return out;
}

}  // namespace sextant
