// The split patterns of o200k and Tekken, which cut a word where a capital follows a small letter, followed by hand.
#include "text/split/split_rules.h"

namespace sextant {

namespace {

enum class Suffix { none, contraction };

// With U for [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}] and W for [\p{Ll}\p{Lm}\p{Lo}\p{M}], which share all but the letters that
// have two cases: [^\r\n\p{L}\p{N}]?U*W+ , else [^\r\n\p{L}\p{N}]?U+W* , each with a contraction behind it; then
// numbers, signs and white space as in Llama 3.
struct CasedRule {
  static constexpr bool kCutsWords = true;
  int digits;  // \p{N}{1,digits}
  Suffix suffix;

  const char* end_of_piece(const RuleReader& text, const char* at) const {
    RuleReader::Seen seen = text.look(at);
    const char* next = at + seen.size;
    if (seen.kind == CharKind::number) return skip_numbers(text, next, digits - 1);
    if (const char* end = word(text, at, next, seen.kind); end != at) return with_suffix(text, end);
    if (seen.kind == CharKind::other) return signs(text, next);
    if (*at == ' ' && text.is(next, CharKind::other)) return signs(text, next);
    return end_of_spaces(text, at, text.skip(next, CharKind::space));
  }

 private:
  // `at` where no word begins.
  static const char* word(const RuleReader& text, const char* at, const char* next, CharKind kind) {
    bool may_lead = kind != CharKind::letter && !is_newline(*at);
    if (may_lead)
      if (const char* end = ends_small(text, next); end != next) return end;
    if (const char* end = ends_small(text, at); end != at) return end;
    // All capitals.
    if (may_lead)
      if (const char* end = text.skip_having(next, kBeginsWord); end != next) return end;
    return text.skip_having(at, kBeginsWord);
  }

  // U*W+ , or `at`. Where nothing but W follows U*, it gives back what it took behind the last that is also of W.
  static const char* ends_small(const RuleReader& text, const char* at) {
    const char* shared_end = at;
    const char* here = at;
    while (here != text.end()) {
      Utf8Char c = decode_valid_utf8(here);
      CharTraits traits = text.traits_of(c.code);
      if (!traits.any_of(kBeginsWord)) {
        if (traits.any_of(kGoesOnInWord)) return small_end(text, here + c.size);
        break;
      }
      here += c.size;
      if (traits.any_of(kGoesOnInWord)) shared_end = here;
    }
    return shared_end;
  }

  static const char* small_end(const RuleReader& text, const char* at) {
    return text.skip_having(text.skip_ascii<AsciiLetters::lower>(at), kGoesOnInWord);
  }

  const char* with_suffix(const RuleReader& text, const char* at) const {
    return suffix == Suffix::none ? at : contraction(text, at, Case::ignored);
  }

  // [^\s\p{L}\p{N}]*[\r\n/]*
  static const char* signs(const RuleReader& text, const char* at) {
    at = text.skip(at, CharKind::other);
    while (at != text.end() && (is_newline(*at) || *at == '/')) ++at;
    return at;
  }
};

}  // namespace

std::unique_ptr<Splitter> o200k_splitter() {
  return splitter_of(CasedRule{.digits = 3, .suffix = Suffix::contraction});
}

std::unique_ptr<Splitter> tekken_splitter() {
  return splitter_of(CasedRule{.digits = 1, .suffix = Suffix::none});
}

}  // namespace sextant
