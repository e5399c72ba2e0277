// Tokenizers drawn at random against ids that HF `tokenizers` gave (tests/peers/drawn_tokenizers.py): added tokens of
// white space with every flag, and patterns that match nothing.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "text/tokenizer.h"
#include "text/tokenizer_fixtures.h"

namespace sextant {
namespace {

using Json = nlohmann::json;
using Ids = std::vector<uint32_t>;

TEST(DrawnTokenizer, EncodesAsHfDoes) {
  std::istringstream lines(read_file(tokenizer_fixture("drawn.jsonl")));
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  const Json model = Json::parse(line);
  int texts = 0;
  while (std::getline(lines, line)) {
    Json drawn = Json::parse(line);
    Json file = drawn["file"];
    file["model"] = model;
    Tokenizer tokenizer = Tokenizer::from_json(file.dump(), "drawn");
    for (const Json& example : drawn["cases"]) {
      const std::string text = example[0];
      EXPECT_EQ(tokenizer.encode(text), example[1].get<Ids>())
          << testing::PrintToString(text) << " by " << drawn["file"].dump();
      ++texts;
    }
  }
  EXPECT_GT(texts, 1000);
}

// A tokenizer of single characters: 'a' is 65, as in ASCII.
Tokenizer characters(std::string_view added, std::string_view normalizer) {
  Json vocab;
  for (int c = 0; c < 128; ++c) vocab[std::string(1, static_cast<char>(c))] = c;
  Json file{{"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", Json::array()}}}};
  file["added_tokens"] = Json::parse(added);
  file["normalizer"] = Json::parse(normalizer);
  return Tokenizer::from_json(file.dump(), "characters");
}

Tokenizer replacing(std::string_view pattern) {
  Json normalizer{{"type", "Replace"}, {"pattern", {{"Regex", pattern}}}, {"content", "#"}};
  return characters("[]", normalizer.dump());
}

std::string replaced(std::string_view pattern, std::string_view text) {
  Tokenizer tokenizer = replacing(pattern);
  return tokenizer.decode(tokenizer.encode(text));
}

// All from HF.
TEST(AddedToken, TakesRepeatedWhiteSpaceOnce) {
  Tokenizer both = characters(R"([{"id": 128, "content": "\n\n", "lstrip": true, "rstrip": true}])", "null");
  EXPECT_EQ(both.encode("a\n\n\n\nb"), (Ids{'a', 128, 'b'}));
  EXPECT_EQ(both.encode("\n\n a \n\n \n\n b"), (Ids{128, 'a', 128, 'b'}));
  Tokenizer right = characters(R"([{"id": 128, "content": "\n\n", "rstrip": true}])", "null");
  EXPECT_EQ(right.encode("a\n\n\n\nb"), (Ids{'a', 128, 128, 'b'}));
  Tokenizer left = characters(R"([{"id": 128, "content": "\n\n", "lstrip": true}])", "null");
  EXPECT_EQ(left.encode("a\n\n\n\nb"), (Ids{'a', 128, 128, 'b'}));
}

// HF panics here ("AddedVocabulary bad split"): a token begins where the one before it took the white space.
TEST(AddedToken, InsideWhiteSpaceThatAnotherTookIsNoToken) {
  Tokenizer tokenizer = characters(R"([{"id": 128, "content": "<A>", "rstrip": true},
                                       {"id": 9, "content": "\t", "lstrip": true}])",
                                   "null");
  EXPECT_EQ(tokenizer.encode("<A>\t\t\tb"), (Ids{128, 'b'}));
  EXPECT_EQ(tokenizer.encode("<A>\tb"), (Ids{128, 'b'}));
}

TEST(AddedToken, OfThoseThatLookTheSameTheFirstCounts) {
  constexpr std::string_view kLowercase = R"({"type": "Lowercase"})";
  Tokenizer plain = characters(R"([{"id": 128, "content": "Abc", "normalized": true},
                                   {"id": 129, "content": "abc", "normalized": true}])",
                               kLowercase);
  EXPECT_EQ(plain.encode("xABCabc"), (Ids{'x', 128, 128}));
}

TEST(ReplaceNormalizer, ReplacesEmptyMatches) {
  EXPECT_EQ(replaced("$", "ab"), "ab#");
  EXPECT_EQ(replaced("$", "a b\nbab\n"), "a b#\nbab#\n#");
  EXPECT_EQ(replaced(R"(\z)", "ab\n"), "ab\n#");
  EXPECT_EQ(replaced(R"(\Z)", "ab\n"), "ab#\n#");
  EXPECT_EQ(replaced("^", "a b\nbab\n"), "#a b\n#bab\n");
  EXPECT_EQ(replaced(R"(\A)", "a\nb"), "#a\nb");
  EXPECT_EQ(replaced(R"(\b)", "a b\nbab"), "#a# #b#\n#bab#");
  EXPECT_EQ(replaced("x*", "abxxb"), "#a#b#b#");
  EXPECT_EQ(replaced("x*", "x"), "#");
  EXPECT_EQ(replaced("(?=b)", "abb"), "a#b#b");
  EXPECT_EQ(replaced("", "ab"), "#a#b#");
  for (std::string_view pattern : {"$", R"(\z)", "^", "x*", ""}) EXPECT_EQ(replaced(pattern, ""), "") << pattern;
}

TEST(ReplaceNormalizer, OfAnEmptyStringReplacesBetweenCharacters) {
  Tokenizer tokenizer = characters("[]", R"({"type": "Replace", "pattern": {"String": ""}, "content": "#"})");
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("ab")), "#a#b#");
}

TEST(AddedToken, ThatTheNormalizerRemovesIsRefused) {
  try {
    characters(R"([{"id": 128, "content": "\n\n", "normalized": true}])", R"({"type": "Strip"})");
    FAIL() << "accepted";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("is removed by the normalizer"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace sextant
