// Shared parts of split patterns that are implemented by hand: a reader of characters, and a splitter around a rule. A
// rule has end_of_piece(text, at): where the piece that begins at `at` ends.
#pragma once

#include <bit>
#include <cstring>

#include "text/split/split.h"
#include "text/unicode/unicode_classes.h"
#include "text/unicode/unicode_utf8.h"

namespace sextant {

inline constexpr bool is_newline(char c) {
  return c == '\r' || c == '\n';
}

enum class AsciiLetters : uint8_t { all, lower };

// Bytes 0..n-1 of `word` (n = the result) are such letters. Eight are tested at once, since the length of a word is
// what a branch predictor cannot know.
template <AsciiLetters letters>
size_t leading_ascii_letters(uint64_t word) {
  constexpr uint64_t kEach = 0x0101010101010101, kHigh = 0x80 * kEach;
  constexpr uint64_t kFold = letters == AsciiLetters::all ? 0x20 * kEach : 0;
  uint64_t lower = (word | kFold) & ~kHigh;
  uint64_t from_a = lower + (0x80 - 'a') * kEach;       // high bit: at least 'a'
  uint64_t above_z = lower + (0x80 - 'z' - 1) * kEach;  // high bit: beyond 'z'
  uint64_t others = ~(from_a & ~above_z & ~word) & kHigh;
  return others == 0 ? 8 : static_cast<size_t>(std::countr_zero(others)) / 8;
}

// Looks at the characters of a text.
class RuleReader {
 public:
  explicit RuleReader(std::string_view text) : end_(text.data() + text.size()) {}

  const char* end() const { return end_; }

  struct Seen {
    CharKind kind;
    uint32_t size;
  };

  Seen look(const char* at) const {
    auto byte = static_cast<uint8_t>(*at);
    if (byte < 0x80) return {kinds_.of_ascii(byte), 1};
    Utf8Char c = decode_valid_utf8(at);
    return {kinds_.of(c.code), c.size};
  }

  bool is(const char* at, CharKind kind) const { return at != end_ && look(at).kind == kind; }

  // Past the characters of one kind that begin at `at`.
  const char* skip(const char* at, CharKind kind) const {
    if (kind == CharKind::letter) at = skip_ascii<AsciiLetters::all>(at);
    while (at != end_) {
      Seen seen = look(at);
      if (seen.kind != kind) break;
      at += seen.size;
    }
    return at;
  }

  CharTraits traits_of(char32_t code) const { return traits_.of(code); }
  CharTraits traits(const char* at) const { return traits_.of(decode_valid_utf8(at).code); }
  bool has(const char* at, CharTraits any) const { return at != end_ && traits(at).any_of(any); }

  // Past the characters that have any of these.
  const char* skip_having(const char* at, CharTraits any) const {
    while (at != end_) {
      Utf8Char c = decode_valid_utf8(at);
      if (!traits_.of(c.code).any_of(any)) break;
      at += c.size;
    }
    return at;
  }

  // \s+(?!\S)|\s+ : white space up to its last character, which is left to the word after it, if there is one.
  const char* space_before_word(const char* at, const char* run_end) const {
    if (run_end == end_) return run_end;
    const char* last = previous_utf8(run_end);
    return last == at ? run_end : last;
  }

  template <AsciiLetters letters>
  const char* skip_ascii(const char* at) const {
    for (uint64_t word; end_ - at >= static_cast<ptrdiff_t>(sizeof word);) {
      std::memcpy(&word, at, sizeof word);
      if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
      size_t found = leading_ascii_letters<letters>(word);
      at += found;
      if (found < sizeof word) break;
    }
    return at;
  }

 private:
  const UnicodeKinds& kinds_ = UnicodeKinds::get();
  const UnicodeTraits& traits_ = UnicodeTraits::get();
  const char* end_;
};

enum class Case { exact, ignored };

// 's|'t|'re|'ve|'m|'ll|'d : the end of what matches at `at`, or `at` itself.
inline const char* contraction(const RuleReader& text, const char* at, Case letter_case) {
  auto lower = [&](const char* c) {
    return letter_case == Case::ignored && *c >= 'A' && *c <= 'Z' ? static_cast<char>(*c + 0x20) : *c;
  };
  ptrdiff_t left = text.end() - at;
  if (left < 2 || *at != '\'') return at;
  char first = lower(at + 1);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return at + 2;
  if (left < 3) return at;
  char second = lower(at + 2);
  if ((first == 'r' || first == 'v') && second == 'e') return at + 3;
  if (first == 'l' && second == 'l') return at + 3;
  // U+017F, the long s, is an s to a regex engine that ignores case.
  if (letter_case == Case::ignored && first == '\xC5' && second == '\xBF') return at + 3;
  return at;
}

// Past the numbers at `at`, `most` of them at most.
inline const char* skip_numbers(const RuleReader& text, const char* at, int most) {
  for (; most > 0 && text.is(at, CharKind::number); --most) at += text.look(at).size;
  return at;
}

// \s*[\r\n]+|\s+(?!\S)|\s+ : of the white space from `at` to `run_end` up to its last newline, if it holds one.
inline const char* end_of_spaces(const RuleReader& text, const char* at, const char* run_end) {
  for (const char* end = run_end; end != at; --end)
    if (is_newline(end[-1])) return end;
  return text.space_before_word(at, run_end);
}

template <class Rule>
class RuleSplitter : public Splitter {
 public:
  explicit RuleSplitter(Rule rule) : rule_(rule) {}

  bool cuts_words() const override { return Rule::kCutsWords; }

  size_t cut(std::string_view text, SplitCursor& cursor, std::span<std::string_view> pieces) const override {
    RuleReader reader(text);
    const char* here = text.data() + cursor.at;
    size_t count = 0;
    while (count < pieces.size() && here != reader.end()) {
      const char* end = rule_.end_of_piece(reader, here);
      pieces[count++] = {here, static_cast<size_t>(end - here)};
      here = end;
    }
    cursor.at = static_cast<size_t>(here - text.data());
    return count;
  }

 private:
  Rule rule_;
};

template <class Rule>
std::unique_ptr<Splitter> splitter_of(Rule rule) {
  return std::make_unique<RuleSplitter<Rule>>(rule);
}

// Follows a pattern that does not match all text: `Match` has match_end(text, at), which is `at` where nothing matches.
// The text between two matches is one piece.
template <class Match>
struct RuleWithGaps {
  static constexpr bool kCutsWords = Match::kCutsWords;
  Match match = {};

  const char* end_of_piece(const RuleReader& text, const char* at) const {
    if (const char* end = match.match_end(text, at); end != at) return end;
    do at += text.look(at).size;
    while (at != text.end() && match.match_end(text, at) == at);
    return at;
  }
};

}  // namespace sextant
