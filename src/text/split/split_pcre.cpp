// Any other pattern, run by PCRE2.
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <new>
#include <optional>
#include <vector>

#include "base/error.h"
#include "text/split/split.h"
#include "text/split/split_behavior.h"
#include "text/split/split_translate.h"
#include "text/unicode/unicode_utf8.h"

namespace sextant {

namespace {

std::string pcre_message(int code) {
  PCRE2_UCHAR text[256] = {};
  pcre2_get_error_message(code, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

struct CodeFree {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct ContextFree {
  void operator()(pcre2_compile_context* context) const { pcre2_compile_context_free(context); }
};
struct MatchDataFree {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};

using Code = std::unique_ptr<pcre2_code, CodeFree>;

Code compile(std::string_view text, uint32_t options, const SplitPattern& pattern, std::string_view place) {
  std::unique_ptr<pcre2_compile_context, ContextFree> context(pcre2_compile_context_create(nullptr));
  if (!context) throw std::bad_alloc();
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE offset = 0;
  Code code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), PCRE2_UTF | options, &error, &offset,
                          context.get()));
  if (!code)
    throw UserError(
        {.place = std::string(place),
         .got = fmt::format("PCRE2 does not compile the split pattern {}: {}", pattern.text, pcre_message(error)),
         .expected = "a regular expression"});
  // Where the JIT is missing the interpreter runs, slower and with the same results.
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
  return code;
}

// Finds out in one pass whether a text has any character of a set.
class TextScan {
 public:
  explicit TextScan(CodeSet codes) : codes_(std::move(codes)) {
    blocks_.resize((kLastCode >> kBlockBits) + 1);
    for (CodeRange range : codes_.ranges())
      for (char32_t block = range.first >> kBlockBits; block <= range.last >> kBlockBits; ++block) blocks_[block] = 1;
  }

  bool finds_one(std::string_view text) const {
    if (codes_.empty()) return false;
    bool skip_ascii = codes_.ranges().front().first > 0x7F;
    for (size_t at = 0; at < text.size();) {
      if (skip_ascii && static_cast<uint8_t>(text[at]) < 0x80) {
        at += ascii_prefix(text.substr(at));
        continue;
      }
      Utf8Char block = block_of(text.data() + at);
      if (blocks_[block.code] && codes_.contains(decode_valid_utf8(text.data() + at).code)) return true;
      at += block.size;
    }
    return false;
  }

 private:
  static constexpr int kBlockBits = 6;  // as many as the last byte of a character holds

  // The character at `at` without its last bits.
  static Utf8Char block_of(const char* at) {
    auto byte = [at](int i) { return static_cast<char32_t>(static_cast<uint8_t>(at[i])); };
    if (byte(0) < 0x80) return {byte(0) >> kBlockBits, 1};
    if (byte(0) < 0xE0) return {byte(0) & 0x1F, 2};
    if (byte(0) < 0xF0) return {(byte(0) & 0x0F) << 6 | (byte(1) & 0x3F), 3};
    return {(byte(0) & 0x07) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 4};
  }

  CodeSet codes_;
  std::vector<uint8_t> blocks_;  // 1: the block of code points has some of the set
};

class PcreSplitter : public Splitter {
 public:
  PcreSplitter(const SplitPattern& pattern, std::string_view place) : pattern_(pattern), place_(place) {
    if (pattern.kind == PatternKind::literal) {
      usual_ = compile(pattern.text, PCRE2_LITERAL, pattern, place);
      return;
    }
    TranslatedPattern translated = translate_pattern(pattern.text, place);
    usual_ = compile(translated.quick, PCRE2_MULTILINE, pattern, place);
    unusual_ = compile(translated.exact, PCRE2_MULTILINE, pattern, place);
    scan_ = TextScan(translated.quick_is_wrong_on);
  }

  size_t cut(std::string_view text, SplitCursor& cursor, std::span<std::string_view> pieces) const override {
    using Text = SplitCursor::Text;
    if (cursor.text == Text::unseen) cursor.text = scan_.finds_one(text) ? Text::unusual : Text::usual;
    MatchData data(pcre2_match_data_create(1, nullptr));
    if (!data) throw std::bad_alloc();
    Search search{cursor.text == Text::usual ? usual_.get() : unusual_.get(), data.get(), text};
    auto next = [&](size_t at) { return next_match(search, at); };
    return BehaviorCut(text, pattern_.keep, next)(cursor, pieces);
  }

 private:
  using MatchData = std::unique_ptr<pcre2_match_data, MatchDataFree>;
  struct Search {
    pcre2_code* code;
    pcre2_match_data* data;
    std::string_view text;
  };

  // The first match after `at`. An empty one right at `at` does not count: it would end where the last one ended.
  std::optional<MatchSpan> next_match(const Search& search, size_t at) const {
    for (size_t from = at; from < search.text.size(); from += decode_valid_utf8(search.text.data() + from).size) {
      if (!finds(search, from)) return std::nullopt;
      const PCRE2_SIZE* found = pcre2_get_ovector_pointer(search.data);
      MatchSpan match{found[0], found[1]};
      if (match.begin != match.end || match.begin != at) return match;
    }
    return std::nullopt;
  }

  bool finds(const Search& search, size_t from) const {
    auto match = [&](uint32_t options) {
      return pcre2_match(search.code, reinterpret_cast<PCRE2_SPTR>(search.text.data()), search.text.size(), from,
                         PCRE2_NO_UTF_CHECK | options, search.data, nullptr);
    };
    int result = match(0);
    // The JIT works on 32 KiB of profile; the interpreter takes what it needs from the heap.
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
  // PCRE2's own character tables may be of another Unicode version than HF's. Few texts have characters that the two
  // know differently, and for the others the tables are the quicker way.
  Code usual_, unusual_;
  TextScan scan_{CodeSet()};
};

}  // namespace

std::unique_ptr<Splitter> pcre_splitter(const SplitPattern& pattern, std::string_view place) {
  return std::make_unique<PcreSplitter>(pattern, place);
}

std::unique_ptr<Splitter> make_splitter(const SplitPattern& pattern, std::string_view place) {
  if (pattern.kind == PatternKind::regex)
    if (std::unique_ptr<Splitter> known = known_splitter(pattern.text, pattern.keep)) return known;
  return pcre_splitter(pattern, place);
}

}  // namespace sextant
