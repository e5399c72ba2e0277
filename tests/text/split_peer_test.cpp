// Split patterns run by PCRE2 against what Hugging Face `tokenizers` made of them (tests/fixtures/split), and those
// that are refused because PCRE2 would make something else of them.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "base/files.h"
#include "checkout.h"
#include "text/split/pcre_categories.h"
#include "text/split/split.h"
#include "text/split/split_translate.h"
#include "text/unicode/unicode_properties.h"

namespace sextant {
namespace {

using Json = nlohmann::json;
using Pieces = std::vector<std::string>;

Pieces pieces_of(const Splitter& splitter, std::string_view text) {
  Pieces out;
  std::vector<std::string_view> pieces(16);
  SplitCursor cursor;
  while (size_t count = splitter.cut(text, cursor, pieces))
    out.insert(out.end(), pieces.begin(), pieces.begin() + static_cast<ptrdiff_t>(count));
  return out;
}

SplitPattern pattern_of(const Json& line) {
  SplitPattern out{.text = line["pattern"]};
  if (line["behavior"] == "Removed") out.keep = line["invert"] ? SplitKeep::matches_only : SplitKeep::gaps_only;
  return out;
}

TEST(SplitPeer, SplitsAsHfDoes) {
  std::istringstream lines(read_file(std::filesystem::path(checkout::kSources) / "tests/fixtures/split/pieces.jsonl"));
  size_t patterns = 0;
  for (std::string line; std::getline(lines, line); ++patterns) {
    Json recorded = Json::parse(line);
    SplitPattern pattern = pattern_of(recorded);
    // make_splitter may take one written by hand; both ways must agree with the record.
    for (const auto& splitter : {make_splitter(pattern, "test"), pcre_splitter(pattern, "test")})
      for (const Json& example : recorded["cases"]) {
        std::string text = example[0];
        EXPECT_EQ(pieces_of(*splitter, text), example[1].get<Pieces>())
            << pattern.text << " on " << testing::PrintToString(text);
      }
  }
  EXPECT_GT(patterns, 100u);
}

// Of each: a pattern and what the message says about it.
TEST(SplitPeer, RefusesByNameWhatWouldMeanSomethingElse) {
  const std::pair<std::string_view, std::string_view> refused[] = {
      {R"(a\X)", R"(uses \X (text segments, whose rules differ between Unicode versions) at byte 1)"},
      {R"(\y)", R"(uses \y (text segments)"},
      {R"((a)\1)", R"(uses \1 (a back-reference or an octal number) at byte 3)"},
      {R"((?<n>a)\k<n>)", R"(uses \k (a back-reference) at byte 7)"},
      {R"((a)\g<1>)", R"(uses \g (a call of a group) at byte 3)"},
      {R"(\Ga)", R"(uses \G (where the search began) at byte 0)"},
      {R"(a\Kb)", R"(uses \K (a new begin of the match) at byte 1)"},
      {R"(\cA)", R"(uses \c (a control or meta character) at byte 0)"},
      {R"(\Qa.b\E)", R"(uses \Q (an escape without a meaning known here) at byte 0)"},
      {R"([\X])", R"(uses \X (text segments)"},
      {R"(\xE9)", R"(uses \xE9 (a byte of a character) at byte 0)"},
      {R"(\uD800)", R"(uses D800 (not a character) at byte 0)"},
      {R"(\u12)", R"(uses \u without four hexadecimal digits at byte 0)"},
      {R"(\pL)", R"(uses \p without {...} at byte 0)"},
      {R"(a\p{Coptic})", R"(uses the property \p{Coptic} at byte 1)"},
      {R"([[:alphax:]])", R"(uses [: without the name of a POSIX bracket and :] at byte 1)"},
      {R"([\w-x])", R"(uses - between items of [...] (write \-) at byte 3)"},
      {R"([a-c-e])", R"(uses - between items of [...] (write \-) at byte 4)"},
      {R"([a&&])", R"(uses an empty class or operand of && in [...] at byte 0)"},
      {R"((?i)ss)", R"(uses (?i) on characters that together equal U+00DF when case is ignored at byte 5)"},
      {R"((?i)s{2})", R"(uses (?i) on characters that together equal U+00DF when case is ignored at byte 5)"},
      {R"((?i:s)(?i:S))", R"(uses (?i) on characters that together equal U+00DF when case is ignored at byte 10)"},
      {R"((?i)ß)", R"(uses (?i) on U+00DF, which equals several characters when case is ignored at byte 4)"},
      {R"((?i)[a-ÿ])",
       R"(uses (?i) on [...] with U+00DF, which equals several characters when case is ignored at byte 4)"},
      {R"((?i)fi)", R"(uses (?i) on characters that together equal U+FB01 when case is ignored at byte 5)"},
      {R"((?x) a)", R"(uses a kind of group not known here at byte 0)"},
      {R"((?#a))", R"(uses a kind of group not known here at byte 0)"},
      {R"((?~a))", R"(uses a kind of group not known here at byte 0)"},
      {R"((?P<n>a))", R"(uses a kind of group not known here at byte 0)"},
      {R"((*FAIL))", R"(uses (* (a callout to Oniguruma, a verb to PCRE2) at byte 0)"},
      {R"((?:a?)*)", R"(uses a repetition of what may match nothing at byte 6)"},
      {R"(a**)", R"(uses a quantifier behind a quantifier at byte 2)"},
      {R"(a{2,1})", R"(uses {n,m} with n above m or beyond 65535 at byte 1)"},
      {R"((?=a)*)", R"(uses a quantifier behind an anchor or look-around at byte 5)"},
      {R"(^?)", R"(uses a quantifier behind an anchor or look-around at byte 1)"},
      {R"(a|*)", R"(has a quantifier with nothing before it at byte 2)"},
      {R"(a))", R"(has ) without ( at byte 1)"},
      {R"(x(a)", R"(has ( without ) at byte 1)"},
      {R"(x[a)", R"(has [ without ] at byte 1)"},
      {R"([z-a])", R"(has a range in [...] whose end comes before its begin at byte 2)"},
  };
  for (const auto& [pattern, message] : refused) {
    try {
      pcre_splitter({.text = std::string(pattern)}, "tokenizer.json pattern");
      ADD_FAILURE() << pattern << " was taken";
    } catch (const UserError& error) {
      EXPECT_NE(std::string_view(error.what()).find(message), std::string_view::npos)
          << pattern << ": " << error.what();
      EXPECT_TRUE(std::string_view(error.what()).starts_with("tokenizer.json pattern: ")) << error.what();
    }
  }
}

// PCRE2 10.42 is of Unicode 14 and a newer one may be ahead of HF: either way the classes are HF's.
TEST(SplitPeer, SpellsOutWhereTablesOfPcreDiffer) {
  CodeSet letters = unicode_property("L")->codes;
  CodeSet theirs = pcre_category("L");
  TranslatedPattern translated = translate_pattern(R"(\p{L}+)", "test");
  EXPECT_EQ(translated.quick, R"(\p{L}+)");
  CodeSet differing = letters.without(theirs);
  differing.add(theirs.without(letters));
  EXPECT_EQ(translated.quick_is_wrong_on, differing);
  // U+1C89 and U+1C8A came with Unicode 16.
  EXPECT_EQ(pieces_of(*pcre_splitter({.text = R"(\p{L}+)"}, "test"), "-\u1C89a-"), (Pieces{"-", "\u1C89a", "-"}));
  EXPECT_EQ(pieces_of(*pcre_splitter({.text = R"([^\p{L}]+)"}, "test"), "-\u1C89a-"), (Pieces{"-", "\u1C89a", "-"}));
}

// Characters given one by one are no reason to leave the quick way.
TEST(SplitPeer, NamedCharactersAreQuick) {
  EXPECT_FALSE(translate_pattern(R"([^\s\p{L}\p{N}々ー]+)", "test").quick_is_wrong_on.contains(U'々'));
  EXPECT_FALSE(translate_pattern(R"([^\s\p{L}\p{N}]+)", "test").quick_is_wrong_on.contains(U'\u3000'));
  EXPECT_TRUE(translate_pattern(R"([一-龥]+)", "test").quick_is_wrong_on.empty());
}

TEST(CodeSet, Algebra) {
  const CodeRange ranges[] = {{5, 9}, {1, 2}, {3, 3}, {8, 12}};
  CodeSet set(ranges);
  EXPECT_EQ(set, CodeSet(std::vector<CodeRange>{{1, 3}, {5, 12}}));
  EXPECT_EQ(set.inverted().inverted(), set);
  EXPECT_EQ(set.inverted(), CodeSet(std::vector<CodeRange>{{0, 0}, {4, 4}, {13, kLastCode}}));
  EXPECT_EQ(set.both(CodeSet({3, 6})), CodeSet(std::vector<CodeRange>{{3, 3}, {5, 6}}));
  EXPECT_EQ(set.without(CodeSet({3, 6})), CodeSet(std::vector<CodeRange>{{1, 2}, {7, 12}}));
  EXPECT_TRUE(set.contains(12));
  EXPECT_FALSE(set.contains(13));
  EXPECT_TRUE(CodeSet({0, kLastCode}).inverted().empty());
}

}  // namespace
}  // namespace sextant
