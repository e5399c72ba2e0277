// The split patterns of GPT-2, Llama 3 and Qwen 2, followed by hand: each function below is one pattern, read from left
// to right as a regex engine would try it. tests/text/split_test.cpp holds them to PCRE2.
#include <bit>
#include <cstring>

#include "text/split/split.h"
#include "text/unicode/unicode_classes.h"
#include "text/unicode/unicode_utf8.h"

namespace sextant {

namespace {

constexpr bool is_newline(char c) {
  return c == '\r' || c == '\n';
}

// Bytes 0..n-1 of `word` (n = the result) are ASCII letters. Eight are tested at once, since the length of a word is
// what a branch predictor cannot know.
size_t leading_ascii_letters(uint64_t word) {
  constexpr uint64_t kEach = 0x0101010101010101, kHigh = 0x80 * kEach;
  uint64_t lower = (word | 0x20 * kEach) & ~kHigh;
  uint64_t from_a = lower + (0x80 - 'a') * kEach;       // high bit: at least 'a'
  uint64_t above_z = lower + (0x80 - 'z' - 1) * kEach;  // high bit: beyond 'z'
  uint64_t others = ~(from_a & ~above_z & ~word) & kHigh;
  return others == 0 ? 8 : static_cast<size_t>(std::countr_zero(others)) / 8;
}

// Looks at the characters of a text.
class Reader {
 public:
  explicit Reader(std::string_view text) : end_(text.data() + text.size()) {}

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
    if (kind == CharKind::letter) at = skip_ascii_letters(at);
    while (at != end_) {
      Seen seen = look(at);
      if (seen.kind != kind) break;
      at += seen.size;
    }
    return at;
  }

  // \s+(?!\S)|\s+ : white space up to its last character, which is left to the word after it, if there is one.
  const char* space_before_word(const char* at, const char* run_end) const {
    if (run_end == end_) return run_end;
    const char* last = previous_utf8(run_end);
    return last == at ? run_end : last;
  }

 private:
  const char* skip_ascii_letters(const char* at) const {
    for (uint64_t word; end_ - at >= static_cast<ptrdiff_t>(sizeof word);) {
      std::memcpy(&word, at, sizeof word);
      if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
      size_t letters = leading_ascii_letters(word);
      at += letters;
      if (letters < sizeof word) break;
    }
    return at;
  }

  const UnicodeKinds& kinds_ = UnicodeKinds::get();
  const char* end_;
};

enum class Case { exact, ignored };

// 's|'t|'re|'ve|'m|'ll|'d : the end of what matches at `at`, or `at` itself.
const char* contraction(const Reader& text, const char* at, Case letter_case) {
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

struct Gpt2Rule {
  const char* end_of_piece(const Reader& text, const char* at) const {
    if (const char* end = contraction(text, at, Case::exact); end != at) return end;
    const char* body = *at == ' ' && at + 1 != text.end() ? at + 1 : at;
    Reader::Seen seen = text.look(body);
    if (seen.kind != CharKind::space) return text.skip(body + seen.size, seen.kind);
    return text.space_before_word(at, text.skip(body + seen.size, CharKind::space));
  }
};

struct Llama3Rule {
  int digits;  // \p{N}{1,digits}

  const char* end_of_piece(const Reader& text, const char* at) const {
    if (const char* end = contraction(text, at, Case::ignored); end != at) return end;
    Reader::Seen seen = text.look(at);
    const char* next = at + seen.size;
    if (seen.kind == CharKind::letter) return text.skip(next, CharKind::letter);
    if (seen.kind == CharKind::number) return few_numbers(text, next);
    // [^\r\n\p{L}\p{N}]?\p{L}+ : one sign or space may lead a word.
    if (!is_newline(*at) && text.is(next, CharKind::letter)) return text.skip(next, CharKind::letter);
    if (seen.kind == CharKind::other) return signs(text, next);
    if (*at == ' ' && text.is(next, CharKind::other)) return signs(text, next);
    return spaces(text, at, next);
  }

 private:
  const char* few_numbers(const Reader& text, const char* at) const {
    for (int left = digits - 1; left > 0 && text.is(at, CharKind::number); --left) at += text.look(at).size;
    return at;
  }

  // [^\s\p{L}\p{N}]*[\r\n]*
  static const char* signs(const Reader& text, const char* at) {
    at = text.skip(at, CharKind::other);
    while (at != text.end() && is_newline(*at)) ++at;
    return at;
  }

  // \s*[\r\n]+|\s+(?!\S)|\s+ : up to the last newline of the white space, if it holds one.
  static const char* spaces(const Reader& text, const char* at, const char* next) {
    const char* run_end = text.skip(next, CharKind::space);
    for (const char* end = run_end; end != at; --end)
      if (is_newline(end[-1])) return end;
    return text.space_before_word(at, run_end);
  }
};

struct DigitRule {
  DigitRuns runs;

  const char* end_of_piece(const Reader& text, const char* at) const {
    Reader::Seen seen = text.look(at);
    at += seen.size;
    if (seen.kind == CharKind::number) return runs == DigitRuns::single ? at : text.skip(at, CharKind::number);
    while (at != text.end()) {
      seen = text.look(at);
      if (seen.kind == CharKind::number) break;
      at += seen.size;
    }
    return at;
  }
};

template <class Rule>
class RuleSplitter : public Splitter {
 public:
  explicit RuleSplitter(Rule rule) : rule_(rule) {}

  size_t cut(std::string_view text, SplitCursor& cursor, std::span<std::string_view> pieces) const override {
    Reader reader(text);
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

}  // namespace

std::unique_ptr<Splitter> known_splitter(std::string_view pattern) {
  if (pattern == kGpt2Pattern) return std::make_unique<RuleSplitter<Gpt2Rule>>(Gpt2Rule{});
  if (pattern == kLlama3Pattern) return std::make_unique<RuleSplitter<Llama3Rule>>(Llama3Rule{.digits = 3});
  if (pattern == kQwen2Pattern) return std::make_unique<RuleSplitter<Llama3Rule>>(Llama3Rule{.digits = 1});
  return nullptr;
}

std::unique_ptr<Splitter> digit_splitter(DigitRuns runs) {
  return std::make_unique<RuleSplitter<DigitRule>>(DigitRule{runs});
}

}  // namespace sextant
