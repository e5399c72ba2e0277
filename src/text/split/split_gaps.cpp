// Split patterns that leave gaps between their matches, followed by hand: those of DeepSeek-V3, BLOOM and Falcon.
#include "text/split/split_rules.h"

namespace sextant {

namespace {

bool is_ascii_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_ascii_digit(char c) {
  return c >= '0' && c <= '9';
}

struct UpToThreeNumbers {
  static constexpr bool kCutsWords = false;

  const char* match_end(const RuleReader& text, const char* at) const { return skip_numbers(text, at, 3); }
};

struct Ideographs {
  static constexpr bool kCutsWords = false;

  const char* match_end(const RuleReader& text, const char* at) const {
    while (at != text.end()) {
      Utf8Char c = decode_valid_utf8(at);
      if (!((c.code >= 0x4E00 && c.code <= 0x9FA5) || (c.code >= 0x3040 && c.code <= 0x30FF))) break;
      at += c.size;
    }
    return at;
  }
};

struct DeepSeekWords {
  static constexpr bool kCutsWords = true;

  const char* match_end(const RuleReader& text, const char* at) const {
    RuleReader::Seen seen = text.look(at);
    CharTraits traits = text.traits(at);
    const char* next = at + seen.size;
    // A sign of ASCII, which all of its punctuation and symbols are, leads letters of ASCII only.
    bool sign = traits.any_of(kSign);
    if (sign && seen.size == 1 && next != text.end() && is_ascii_letter(*next)) return ascii_letters(text, next);
    // [^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+
    bool may_lead = !sign && !traits.any_of(kLetter) && !is_newline(*at);
    if (may_lead && text.has(next, kLetter | kMark)) return text.skip_having(next, kLetter | kMark);
    if (traits.any_of(kLetter | kMark)) return text.skip_having(next, kLetter | kMark);
    if (sign) return signs(text, next);
    if (*at == ' ' && text.has(next, kSign)) return signs(text, next);
    if (seen.kind != CharKind::space) return at;
    return end_of_spaces(text, at, text.skip(next, CharKind::space));
  }

 private:
  static const char* ascii_letters(const RuleReader& text, const char* at) {
    at = text.skip_ascii<AsciiLetters::all>(at);
    while (at != text.end() && is_ascii_letter(*at)) ++at;
    return at;
  }

  // [\p{P}\p{S}]*[\r\n]*
  static const char* signs(const RuleReader& text, const char* at) {
    at = text.skip_having(at, kSign);
    while (at != text.end() && is_newline(*at)) ++at;
    return at;
  }
};

//  ?[^(\s|[.,!?…。，、।۔،])]+ : the brackets inside are a set within the set, and ( | ) are members of it.
struct BloomWords {
  static constexpr bool kCutsWords = true;

  const char* match_end(const RuleReader& text, const char* at) const {
    const char* body = *at == ' ' ? at + 1 : at;
    const char* end = body;
    while (end != text.end() && in_word(text, end)) end += text.look(end).size;
    return end == body ? at : end;
  }

 private:
  static bool in_word(const RuleReader& text, const char* at) {
    switch (decode_valid_utf8(at).code) {
      case U'(':
      case U'|':
      case U')':
      case U'.':
      case U',':
      case U'!':
      case U'?':
      case U'…':
      case U'。':
      case U'，':
      case U'、':
      case U'।':
      case U'۔':
      case U'،':
        return false;
      default:
        return text.look(at).kind != CharKind::space;
    }
  }
};

struct ThreeDigits {
  static constexpr bool kCutsWords = false;

  const char* match_end(const RuleReader& text, const char* at) const {
    bool three = text.end() - at >= 3 && is_ascii_digit(at[0]) && is_ascii_digit(at[1]) && is_ascii_digit(at[2]);
    return three ? at + 3 : at;
  }
};

}  // namespace

std::unique_ptr<Splitter> deepseek_number_splitter() {
  return splitter_of(RuleWithGaps<UpToThreeNumbers>{});
}
std::unique_ptr<Splitter> deepseek_ideograph_splitter() {
  return splitter_of(RuleWithGaps<Ideographs>{});
}
std::unique_ptr<Splitter> deepseek_word_splitter() {
  return splitter_of(RuleWithGaps<DeepSeekWords>{});
}
std::unique_ptr<Splitter> bloom_splitter() {
  return splitter_of(RuleWithGaps<BloomWords>{});
}
std::unique_ptr<Splitter> three_digit_splitter() {
  return splitter_of(RuleWithGaps<ThreeDigits>{});
}

}  // namespace sextant
