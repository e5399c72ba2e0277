#include "text/split/pcre_pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <new>
#include <string>
#include <vector>

#include "base/error.h"
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

}  // namespace

struct PcrePattern::State {
  State(const SplitPattern& pattern, std::string_view place) : place(place) {
    if (pattern.kind == PatternKind::literal) {
      usual = compile(pattern.text, PCRE2_LITERAL, pattern, place);
      return;
    }
    TranslatedPattern translated = translate_pattern(pattern.text, place);
    usual = compile(translated.quick, PCRE2_MULTILINE, pattern, place);
    unusual = compile(translated.exact, PCRE2_MULTILINE, pattern, place);
    scan = TextScan(translated.quick_is_wrong_on);
  }

  std::string place;
  // PCRE2's own character tables may be of another Unicode version than HF's. Few texts have characters that the two
  // know differently, and for the others the tables are the quicker way.
  Code usual, unusual;
  TextScan scan{CodeSet()};
};

PcrePattern::PcrePattern(const SplitPattern& pattern, std::string_view place)
    : state_(std::make_unique<State>(pattern, place)) {}
PcrePattern::~PcrePattern() = default;

struct PcreSearch::Data {
  pcre2_code* code = nullptr;
  std::unique_ptr<pcre2_match_data, MatchDataFree> matches{pcre2_match_data_create(1, nullptr)};
};

PcreSearch::PcreSearch(const PcrePattern& pattern, std::string_view text, SplitCursor::Text seen)
    : pattern_(pattern), text_(text), seen_(seen), data_(std::make_unique<Data>()) {
  using Text = SplitCursor::Text;
  const PcrePattern::State& state = *pattern.state_;
  if (seen_ == Text::unseen) seen_ = state.scan.finds_one(text) ? Text::unusual : Text::usual;
  data_->code = (seen_ == Text::usual ? state.usual : state.unusual).get();
  if (!data_->matches) throw std::bad_alloc();
}
PcreSearch::~PcreSearch() = default;

std::optional<MatchSpan> PcreSearch::first() {
  if (text_.empty() || !finds(0)) return std::nullopt;
  return found();
}

std::optional<MatchSpan> PcreSearch::next(size_t at) {
  // At the end of the text, too: $ matches there.
  for (size_t from = at; finds(from); from += decode_valid_utf8(text_.data() + from).size) {
    MatchSpan match = found();
    if (match.begin != match.end || match.begin != at) return match;
    if (from == text_.size()) break;
  }
  return std::nullopt;
}

bool PcreSearch::finds(size_t from) {
  auto match = [&](uint32_t options) {
    return pcre2_match(data_->code, reinterpret_cast<PCRE2_SPTR>(text_.data()), text_.size(), from,
                       PCRE2_NO_UTF_CHECK | options, data_->matches.get(), nullptr);
  };
  int result = match(0);
  // The JIT works on 32 KiB of stack; the interpreter takes what it needs from the heap.
  if (result == PCRE2_ERROR_JIT_STACKLIMIT) result = match(PCRE2_NO_JIT);
  if (result >= 0) return true;
  if (result == PCRE2_ERROR_NOMATCH) return false;
  throw UserError({.place = pattern_.state_->place,
                   .got = fmt::format("the pattern failed at byte {} of the text: {}", from, pcre_message(result)),
                   .expected = "a pattern without runaway backtracking"});
}

MatchSpan PcreSearch::found() const {
  const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(data_->matches.get());
  return {bounds[0], bounds[1]};
}

}  // namespace sextant
