// Any other pattern, run by PCRE2. Patterns in tokenizer.json are written for Oniguruma, HF's engine; where the two
// read the same text differently it is translated, or refused by name. One difference stays: \p{...} follows the
// Unicode version of the PCRE2 at hand, HF's the one of Oniguruma, so characters added to Unicode in between may split
// apart.
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <new>
#include <optional>

#include "base/error.h"
#include "data/split.h"
#include "data/unicode_utf8.h"

namespace sextant {

namespace {

// Oniguruma's \w: some fractions and superscripts of Latin-1 are in it.
constexpr std::string_view kWordItems = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{B2}\x{B3}\x{B9}\x{BC}-\x{BE})";

// Rewrites a pattern from Oniguruma's (Ruby) syntax to PCRE2's.
class PatternTranslator {
 public:
  PatternTranslator(std::string_view pattern, std::string_view place) : pattern_(pattern), place_(place) {}

  std::string translate() {
    while (at_ < pattern_.size()) {
      if (pattern_[at_] == '\\')
        escape();
      else if (in_class_)
        inside_class();
      else
        outside_class();
    }
    return std::move(out_);
  }

 private:
  void escape() {
    char letter = at_ + 1 < pattern_.size() ? pattern_[at_ + 1] : '\0';
    switch (letter) {
      case 's':
        return replace(2, R"(\p{White_Space})");
      case 'S':
        return replace(2, R"(\P{White_Space})");
      case 'w':
        return replace(2, in_class_ ? std::string(kWordItems) : fmt::format("[{}]", kWordItems));
      case 'W':
        if (in_class_) refuse(R"(\W inside [...])");
        return replace(2, fmt::format("[^{}]", kWordItems));
      case 'h':
      case 'H':
        refuse(R"(\h (a hexadecimal digit to Oniguruma, a blank to PCRE2))");
      case 'u':
        if (pattern_.substr(at_ + 2).find_first_not_of("0123456789abcdefABCDEF") < 4 || at_ + 6 > pattern_.size())
          refuse(R"(\u without four hexadecimal digits)");
        return replace(6, fmt::format("\\x{{{}}}", pattern_.substr(at_ + 2, 4)));
      case 'p':
      case 'P':
      case 'x':
        if (size_t close = pattern_.find('}', at_); at_ + 2 < pattern_.size() && pattern_[at_ + 2] == '{')
          return copy(close == std::string_view::npos ? pattern_.size() : close + 1 - at_);
    }
    copy(2);
  }

  void inside_class() {
    std::string_view rest = pattern_.substr(at_);
    if (rest.starts_with("&&")) refuse("&& inside [...]");
    if (rest.starts_with("[:")) return copy(std::min(rest.find(":]"), rest.size() - 2) + 2);
    if (rest[0] == '[') refuse("[ inside [...]");
    if (rest[0] == ']') in_class_ = false;
    copy(1);
  }

  void outside_class() {
    std::string_view rest = pattern_.substr(at_);
    if (rest[0] == '[') {
      in_class_ = true;
      copy(rest.starts_with("[^") ? 2 : 1);
      // A ] right after [ or [^ is a character of the class to both engines.
      if (at_ < pattern_.size() && pattern_[at_] == ']') copy(1);
      return;
    }
    if (rest.starts_with("(?")) {
      std::string_view options = rest.substr(2, rest.substr(2).find_first_not_of("imx-"));
      if (options.find('m') != std::string_view::npos) refuse("(?m) (it makes . match newlines to Oniguruma)");
    }
    if (rest[0] == '{') {
      size_t close = rest.find_first_not_of("0123456789,", 1);
      if (close != std::string_view::npos && rest.substr(close).starts_with("}+"))
        refuse("a + after {n,m} (a repetition to Oniguruma, possessive to PCRE2)");
    }
    copy(1);
  }

  void copy(size_t count) { replace(count, pattern_.substr(at_, count)); }
  void replace(size_t count, std::string_view with) {
    out_ += with;
    at_ = std::min(at_ + count, pattern_.size());
  }

  [[noreturn]] void refuse(std::string_view what) const {
    throw UserError({.place = std::string(place_),
                     .got = fmt::format("the split pattern uses {} at byte {}", what, at_),
                     .expected = "a pattern that Oniguruma and PCRE2 read alike"});
  }

  std::string_view pattern_, place_;
  size_t at_ = 0;
  bool in_class_ = false;
  std::string out_;
};

std::string pcre_message(int code) {
  PCRE2_UCHAR text[256] = {};
  pcre2_get_error_message(code, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

struct CodeFree {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct MatchDataFree {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};

class PcreSplitter : public Splitter {
 public:
  PcreSplitter(const SplitPattern& pattern, std::string_view place) : pattern_(pattern), place_(place) {
    bool literal = pattern.kind == PatternKind::literal;
    std::string text = literal ? pattern.text : PatternTranslator(pattern.text, place).translate();
    uint32_t options = PCRE2_UTF | (literal ? PCRE2_LITERAL : PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C);
    int error = 0;
    PCRE2_SIZE offset = 0;
    code_.reset(
        pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), options, &error, &offset, nullptr));
    if (!code_)
      throw UserError({.place = std::string(place),
                       .got = fmt::format("the split pattern does not compile: {} (near byte {} of {})",
                                          pcre_message(error), offset, pattern.text),
                       .expected = "a regular expression"});
    // Where the JIT is missing the interpreter runs, slower and with the same results.
    pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);
  }

  size_t cut(std::string_view text, size_t& at, std::span<std::string_view> pieces) const override {
    std::unique_ptr<pcre2_match_data, MatchDataFree> data(pcre2_match_data_create(1, nullptr));
    if (!data) throw std::bad_alloc();
    size_t count = 0;
    auto keep = [&](size_t begin, size_t end, SplitKeep dropped_by) {
      if (begin != end && pattern_.keep != dropped_by) pieces[count++] = text.substr(begin, end - begin);
    };
    // A match may bring two pieces, itself and the gap before it.
    while (count + 2 <= pieces.size() && at < text.size()) {
      std::optional<Span> match = next_match(text, at, data.get());
      if (!match) match = Span{text.size(), text.size()};
      keep(at, match->begin, SplitKeep::matches_only);
      keep(match->begin, match->end, SplitKeep::gaps_only);
      at = match->end;
    }
    return count;
  }

 private:
  struct Span {
    size_t begin, end;
  };

  // The first match after `at`. An empty one right at `at` does not count: it would end where the last one ended.
  std::optional<Span> next_match(std::string_view text, size_t at, pcre2_match_data* data) const {
    for (size_t from = at; from < text.size(); from += decode_valid_utf8(text.data() + from).size) {
      if (!search(text, from, data)) return std::nullopt;
      const PCRE2_SIZE* found = pcre2_get_ovector_pointer(data);
      Span match{found[0], found[1]};
      if (match.begin != match.end || match.begin != at) return match;
    }
    return std::nullopt;
  }

  bool search(std::string_view text, size_t from, pcre2_match_data* data) const {
    auto match = [&](uint32_t options) {
      return pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                         PCRE2_NO_UTF_CHECK | options, data, nullptr);
    };
    int result = match(0);
    // The JIT works on 32 KiB of stack; the interpreter takes what it needs from the heap.
    if (result == PCRE2_ERROR_JIT_STACKLIMIT) result = match(PCRE2_NO_JIT);
    if (result >= 0) return true;
    if (result == PCRE2_ERROR_NOMATCH) return false;
    throw UserError(
        {.place = place_,
         .got = fmt::format("the split pattern failed at byte {} of the text: {}", from, pcre_message(result)),
         .expected = "a pattern without runaway backtracking"});
  }

  SplitPattern pattern_;
  std::string place_;
  std::unique_ptr<pcre2_code, CodeFree> code_;
};

}  // namespace

std::unique_ptr<Splitter> pcre_splitter(const SplitPattern& pattern, std::string_view place) {
  return std::make_unique<PcreSplitter>(pattern, place);
}

std::unique_ptr<Splitter> make_splitter(const SplitPattern& pattern, std::string_view place) {
  // The known patterns match every character, so that a splitter of theirs knows no gaps to keep or drop.
  if (pattern.kind == PatternKind::regex && pattern.keep != SplitKeep::gaps_only)
    if (std::unique_ptr<Splitter> known = known_splitter(pattern.text)) return known;
  return pcre_splitter(pattern, place);
}

}  // namespace sextant
