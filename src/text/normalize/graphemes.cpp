#include "text/normalize/graphemes.h"

#include "text/unicode/unicode_normal.h"
#include "text/unicode/unicode_utf8.h"

namespace sextant {

namespace {

constexpr char32_t kJoiner = 0x200D;

bool in(char32_t code, char32_t first, char32_t last) {
  return code >= first && code <= last;
}

enum class Hangul { none, lead, vowel, tail, open, closed };

Hangul hangul_of(char32_t code) {
  if (in(code, 0x1100, 0x115F) || in(code, 0xA960, 0xA97C)) return Hangul::lead;
  if (in(code, 0x1160, 0x11A7) || in(code, 0xD7B0, 0xD7C6)) return Hangul::vowel;
  if (in(code, 0x11A8, 0x11FF) || in(code, 0xD7CB, 0xD7FB)) return Hangul::tail;
  if (in(code, 0xAC00, 0xD7A3)) return (code - 0xAC00) % 28 == 0 ? Hangul::open : Hangul::closed;
  return Hangul::none;
}

bool hangul_join(char32_t left, char32_t right) {
  Hangul a = hangul_of(left), b = hangul_of(right);
  if (a == Hangul::none || b == Hangul::none) return false;
  if (a == Hangul::lead) return b != Hangul::tail;
  if (a == Hangul::open || a == Hangul::vowel) return b == Hangul::vowel || b == Hangul::tail;
  return b == Hangul::tail;
}

// Pictographs that a joiner ties to the one before. All but these two are so long that the part before the joiner is
// not looked up as a whole anyway.
bool is_short_pictograph(char32_t code) {
  return code == 0xA9 || code == 0xAE;
}

}  // namespace

size_t end_of_grapheme(std::string_view text, size_t at) {
  Utf8Char last = decode_valid_utf8(text.data() + at);
  char32_t first = last.code;
  for (at += last.size; at < text.size();) {
    Utf8Char next = decode_valid_utf8(text.data() + at);
    if (last.code == '\r' && next.code == '\n') return at + 1;
    GraphemeKind before = grapheme_kind(last.code), kind = grapheme_kind(next.code);
    if (before == GraphemeKind::control || kind == GraphemeKind::control) break;
    bool joins = kind == GraphemeKind::joins_previous || before == GraphemeKind::joins_next ||
                 hangul_join(last.code, next.code) ||
                 (last.code == kJoiner && is_short_pictograph(first) && next.code >= 0xA9);
    if (!joins) break;
    last = next;
    at += next.size;
  }
  return at;
}

bool may_join_next(char32_t code) {
  Hangul hangul = hangul_of(code);
  bool syllable = hangul == Hangul::open || hangul == Hangul::closed;
  return code == '\r' || grapheme_kind(code) == GraphemeKind::joins_next || (hangul != Hangul::none && !syllable);
}

bool may_join_previous(char32_t code) {
  Hangul hangul = hangul_of(code);
  return grapheme_kind(code) == GraphemeKind::joins_previous || hangul == Hangul::vowel || hangul == Hangul::tail;
}

}  // namespace sextant
