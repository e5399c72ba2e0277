// The split patterns of GPT-2, Llama 3, Qwen 2 and cl100k, followed by hand: each function below is one pattern, read
// from left to right as a regex engine would try it. tests/text/split_test.cpp holds them to PCRE2.
#include <array>
#include <limits>

#include "text/split/split_rules.h"

namespace sextant {

namespace {

struct Gpt2Rule {
  static constexpr bool kCutsWords = true;

  const char* end_of_piece(const RuleReader& text, const char* at) const {
    if (const char* end = contraction(text, at, Case::exact); end != at) return end;
    const char* body = *at == ' ' && at + 1 != text.end() ? at + 1 : at;
    RuleReader::Seen seen = text.look(body);
    if (seen.kind != CharKind::space) return text.skip(body + seen.size, seen.kind);
    return text.space_before_word(at, text.skip(body + seen.size, CharKind::space));
  }
};

struct Llama3Rule {
  static constexpr bool kCutsWords = true;
  int digits;                 // \p{N}{1,digits}
  bool whole_at_end = false;  // \s++$

  const char* end_of_piece(const RuleReader& text, const char* at) const {
    if (const char* end = contraction(text, at, Case::ignored); end != at) return end;
    RuleReader::Seen seen = text.look(at);
    const char* next = at + seen.size;
    if (seen.kind == CharKind::letter) return text.skip(next, CharKind::letter);
    if (seen.kind == CharKind::number) return skip_numbers(text, next, digits - 1);
    // [^\r\n\p{L}\p{N}]?\p{L}+ : one sign or space may lead a word.
    if (!is_newline(*at) && text.is(next, CharKind::letter)) return text.skip(next, CharKind::letter);
    if (seen.kind == CharKind::other) return signs(text, next);
    if (*at == ' ' && text.is(next, CharKind::other)) return signs(text, next);
    return spaces(text, at, next);
  }

 private:
  // [^\s\p{L}\p{N}]*[\r\n]*
  static const char* signs(const RuleReader& text, const char* at) {
    at = text.skip(at, CharKind::other);
    while (at != text.end() && is_newline(*at)) ++at;
    return at;
  }

  // White space; where the pattern has \s++$, all of it at the end of the text.
  const char* spaces(const RuleReader& text, const char* at, const char* next) const {
    const char* run_end = text.skip(next, CharKind::space);
    return whole_at_end && run_end == text.end() ? run_end : end_of_spaces(text, at, run_end);
  }
};

struct DigitRule {
  static constexpr bool kCutsWords = false;
  DigitRuns runs;

  const char* end_of_piece(const RuleReader& text, const char* at) const {
    RuleReader::Seen seen = text.look(at);
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

// cl100k's \p{N}{1,3}+ is, to HF's regex engine, one or more times one to three.
constexpr int kAnyNumber = std::numeric_limits<int>::max();

struct KnownPattern {
  std::string_view text;
  bool matches_all;  // there are no gaps between matches
  std::unique_ptr<Splitter> (*make)();
};

constexpr std::array kKnownPatterns{
    KnownPattern{kGpt2Pattern, true, [] { return splitter_of(Gpt2Rule{}); }},
    KnownPattern{kLlama3Pattern, true, [] { return splitter_of(Llama3Rule{.digits = 3}); }},
    KnownPattern{kQwen2Pattern, true, [] { return splitter_of(Llama3Rule{.digits = 1}); }},
    KnownPattern{kCl100kPattern, true,
                 [] { return splitter_of(Llama3Rule{.digits = kAnyNumber, .whole_at_end = true}); }},
    KnownPattern{kO200kPattern, true, o200k_splitter},
    KnownPattern{kTekkenPattern, true, tekken_splitter},
    KnownPattern{kDeepSeekNumbers, false, deepseek_number_splitter},
    KnownPattern{kDeepSeekIdeographs, false, deepseek_ideograph_splitter},
    KnownPattern{kDeepSeekWords, false, deepseek_word_splitter},
    KnownPattern{kBloomPattern, false, bloom_splitter},
    KnownPattern{kThreeDigits, false, three_digit_splitter},
};

}  // namespace

std::unique_ptr<Splitter> known_splitter(std::string_view pattern, SplitKeep keep) {
  for (const KnownPattern& known : kKnownPatterns)
    if (pattern == known.text) {
      bool same = keep == SplitKeep::everything || (known.matches_all && keep == SplitKeep::matches_only);
      return same ? known.make() : nullptr;
    }
  return nullptr;
}

std::unique_ptr<Splitter> digit_splitter(DigitRuns runs) {
  return splitter_of(DigitRule{runs});
}

}  // namespace sextant
