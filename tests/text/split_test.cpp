// The splitters written by hand against PCRE2, which runs the patterns as they are written.
#include "text/split/split.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/rng.h"
#include "text/unicode/unicode_classes.h"
#include "text/unicode/unicode_utf8.h"

namespace sextant {
namespace {

std::vector<std::string> pieces_of(const Splitter& splitter, std::string_view text, size_t room = 64) {
  std::vector<std::string> out;
  std::vector<std::string_view> pieces(room);
  SplitCursor cursor;
  while (size_t count = splitter.cut(text, cursor, pieces))
    out.insert(out.end(), pieces.begin(), pieces.begin() + static_cast<ptrdiff_t>(count));
  return out;
}

std::vector<std::string> regex_pieces(std::string_view pattern, std::string_view text,
                                      SplitKeep keep = SplitKeep::everything) {
  return pieces_of(*pcre_splitter({.text = std::string(pattern), .keep = keep}, "test"), text);
}

std::string utf8(char32_t c) {
  std::string out;
  append_utf8(c, out);
  return out;
}

constexpr char32_t kCodes = 0x110000;

bool is_surrogate(char32_t c) {
  return c >= 0xD800 && c < 0xE000;
}

// By code point: whether the pattern, run by PCRE2, matches it.
std::vector<bool> matching(std::string_view pattern) {
  std::string all;
  for (char32_t c = 0; c < kCodes; ++c)
    if (!is_surrogate(c)) all += utf8(c);
  std::vector<bool> found(kCodes);
  for (const std::string& run : regex_pieces(pattern, all, SplitKeep::matches_only))
    for (size_t at = 0; at < run.size();) {
      Utf8Char c = decode_valid_utf8(run.data() + at);
      found[c.code] = true;
      at += c.size;
    }
  return found;
}

const std::vector<CharKind>& pcre_kinds() {
  static const std::vector<CharKind> kinds = [] {
    std::vector<CharKind> out(kCodes, CharKind::other);
    std::vector<bool> letters = matching(R"(\p{L}+)"), numbers = matching(R"(\p{N}+)"), spaces = matching(R"(\s+)");
    for (char32_t c = 0; c < kCodes; ++c) {
      if (letters[c]) out[c] = CharKind::letter;
      if (numbers[c]) out[c] = CharKind::number;
      if (spaces[c]) out[c] = CharKind::space;
    }
    return out;
  }();
  return kinds;
}

TEST(UnicodeKinds, AgreeWithWhatPatternsMatch) {
  for (char32_t c = 0; c < kCodes; ++c)
    ASSERT_EQ(UnicodeKinds::get().of(c), pcre_kinds()[c]) << "U+" << std::hex << static_cast<uint32_t>(c);
}

TEST(UnicodeKinds, WordCharacters) {
  for (char32_t c : {U'a', U'Z', U'0', U'_', U'é', U'中', U'\u0301', U'\u200D', U'\U00010D4A'})
    EXPECT_TRUE(is_word_character(c)) << static_cast<uint32_t>(c);
  for (char32_t c : {U' ', U'-', U'\0', U'²', U'€', U'\U0001F600', U'\U0010FFFF'})
    EXPECT_FALSE(is_word_character(c)) << static_cast<uint32_t>(c);
}

// Strings of what patterns care about, mixed with any characters at all.
std::string random_text(const Random& random, uint64_t& draw) {
  static const std::vector<std::string> kTricky{"a",      "b",  "S",      "s",      "t",        "re",
                                                "ve",     "LL", "'",      "'",      " ",        " ",
                                                "  ",     "\n", "\r",     "\r\n",   "\t",       "\v",
                                                "1",      "23", ".",      "!",      "é",        "中",
                                                "한",     "ſ",  "\u00A0", "\u0085", "\u2028",   "\u3000",
                                                "\u180E", "٣",  "Ⅷ",      "²",      "\u0301",   "\u200D",
                                                "😀",      "𝟘",  "-",      "\x7F",   "longword", "evenlongerword",
                                                "'d",     "_",  "(",      "|",      "/",        "。",
                                                "Ab",     "AB", "ǅ",      "ʰ",      "あ",       "\u0488"};
  std::string text;
  for (uint64_t left = random.below(draw++, 24); left > 0; --left) {
    if (random.below(draw++, 8) > 0) {
      text += kTricky[random.below(draw++, kTricky.size())];
      continue;
    }
    uint64_t limit = random.below(draw++, 2) ? 0x3000 : 0x110000;
    auto c = static_cast<char32_t>(random.below(draw++, limit));
    if (!is_surrogate(c)) text += utf8(c);
  }
  return text;
}

class KnownPattern : public testing::TestWithParam<std::string_view> {};

TEST_P(KnownPattern, SplitsRandomTextAsPcreDoes) {
  std::unique_ptr<Splitter> by_hand = known_splitter(GetParam());
  ASSERT_NE(by_hand, nullptr);
  std::unique_ptr<Splitter> by_regex = pcre_splitter({.text = std::string(GetParam())}, "test");
  Random random(7, "split_test");
  uint64_t draw = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = random_text(random, draw);
    size_t room = 2 + random.below(draw++, 9);
    ASSERT_EQ(pieces_of(*by_hand, text, room), pieces_of(*by_regex, text)) << testing::PrintToString(text);
  }
}

TEST_P(KnownPattern, SplitsEveryShortTextOfAFewCharactersAsPcreDoes) {
  std::unique_ptr<Splitter> by_hand = known_splitter(GetParam());
  std::unique_ptr<Splitter> by_regex = pcre_splitter({.text = std::string(GetParam())}, "test");
  const std::vector<std::string> alphabet{"a", "s", "A", "'", " ", "\n", "\t", "1", ".", "é", "中", "\u0301", "\u3000"};
  std::vector<std::string> texts{""};
  for (size_t begin = 0, length = 0; length < 4; ++length) {
    size_t end = texts.size();
    for (size_t i = begin; i < end; ++i)
      for (const std::string& c : alphabet) texts.push_back(texts[i] + c);
    begin = end;
  }
  for (const std::string& text : texts) ASSERT_EQ(pieces_of(*by_hand, text), pieces_of(*by_regex, text)) << text;
}

INSTANTIATE_TEST_SUITE_P(Split, KnownPattern,
                         testing::Values(kGpt2Pattern, kLlama3Pattern, kQwen2Pattern, kCl100kPattern, kO200kPattern,
                                         kTekkenPattern, kDeepSeekNumbers, kDeepSeekIdeographs, kDeepSeekWords,
                                         kBloomPattern, kThreeDigits));

TEST(KnownPatterns, ThatLeaveGapsAreLeftToPcreWhereGapsAreDropped) {
  EXPECT_NE(known_splitter(kLlama3Pattern, SplitKeep::matches_only), nullptr);
  EXPECT_EQ(known_splitter(kLlama3Pattern, SplitKeep::gaps_only), nullptr);
  EXPECT_NE(known_splitter(kBloomPattern, SplitKeep::everything), nullptr);
  EXPECT_EQ(known_splitter(kBloomPattern, SplitKeep::matches_only), nullptr);
}

TEST(Split, LongRunsTakeTimeInProportion) {
  for (std::string_view pattern :
       {kGpt2Pattern, kLlama3Pattern, kCl100kPattern, kO200kPattern, kTekkenPattern, kDeepSeekWords}) {
    std::unique_ptr<Splitter> splitter = known_splitter(pattern);
    std::string spaces(1 << 20, ' ');
    EXPECT_EQ(pieces_of(*splitter, spaces + "x").size(), 2u);
    EXPECT_EQ(pieces_of(*splitter, std::string(1 << 20, 'x')).size(), 1u);
    EXPECT_EQ(pieces_of(*splitter, std::string(1 << 20, '.')).size(), 1u);
  }
}

TEST(Split, Digits) {
  using Pieces = std::vector<std::string>;
  EXPECT_EQ(pieces_of(*digit_splitter(DigitRuns::whole), "ab12 3½c"), (Pieces{"ab", "12", " ", "3½", "c"}));
  EXPECT_EQ(pieces_of(*digit_splitter(DigitRuns::single), "ab12 3½c"), (Pieces{"ab", "1", "2", " ", "3", "½", "c"}));
}

TEST(SplitPcre, GapsAndMatches) {
  using Pieces = std::vector<std::string>;
  EXPECT_EQ(regex_pieces("[0-9]+", "a12b3"), (Pieces{"a", "12", "b", "3"}));
  EXPECT_EQ(regex_pieces("[0-9]+", "a12b3", SplitKeep::matches_only), (Pieces{"12", "3"}));
  EXPECT_EQ(regex_pieces("[0-9]+", "a12b3", SplitKeep::gaps_only), (Pieces{"a", "b"}));
  EXPECT_EQ(pieces_of(*pcre_splitter({.text = ".", .kind = PatternKind::literal}, "test"), "a.b"),
            (Pieces{"a", ".", "b"}));
}

// HF gives these pieces: Split(Regex(p), "isolated").pre_tokenize_str(text).
TEST(SplitPcre, EmptyMatchesCutAsInHf) {
  using Pieces = std::vector<std::string>;
  EXPECT_EQ(regex_pieces("x*", "abxxc"), (Pieces{"a", "b", "xx", "c"}));
  EXPECT_EQ(regex_pieces("(?=[A-Z])", "helloBigWorld"), (Pieces{"hello", "Big", "World"}));
}

TEST(SplitPcre, ReadsClassesAsHfDoes) {
  using Pieces = std::vector<std::string>;
  EXPECT_EQ(regex_pieces(R"(\s)", "a\u0085b\u180Ec"), (Pieces{"a", "\u0085", "b\u180Ec"}));
  EXPECT_EQ(regex_pieces(R"([\s]+)", "a\u0085 b\u180Ec"), (Pieces{"a", "\u0085 ", "b\u180Ec"}));
  EXPECT_EQ(regex_pieces(R"(\w+)", "né²_e\u0301-½x⁴"), (Pieces{"né²_e\u0301", "-", "½x", "⁴"}));
  EXPECT_EQ(regex_pieces(R"([\u4E00-\u9FFF])", "a中b"), (Pieces{"a", "中", "b"}));
  EXPECT_EQ(regex_pieces("^b", "a\nb"), (Pieces{"a\n", "b"}));
}

TEST(SplitPcre, RefusesWhatDoesNotCompileOrRunsAway) {
  for (std::string_view pattern : {"(", "[a", R"(\)", "a{2,1}", R"(\u12)", R"(\p{Nonsense})", "*"})
    EXPECT_THROW(regex_pieces(pattern, "a"), UserError) << pattern;
  EXPECT_THROW(regex_pieces("(a|aa)+$", std::string(60, 'a') + "b"), UserError);
}

}  // namespace
}  // namespace sextant
