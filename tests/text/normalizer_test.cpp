// Facts about a normalized text beyond its characters; the characters themselves are compared with Hugging Face's in
// tokenizer_test.cpp and tests/peers.
#include "text/normalize/normalizer.h"

#include <gtest/gtest.h>

namespace sextant {
namespace {

NormalText without_accents(std::string text) {
  NormalText out{std::move(text)};
  sequence_normalizer({form_normalizer(NormalForm::nfd), character_normalizer(CharChange::bert_accents)})->apply(out);
  return out;
}

TEST(Normalizer, KnowsWhetherTheFirstCharacterIsTheTextsFirst) {
  EXPECT_TRUE(without_accents("a\u0301").from_start);
  EXPECT_FALSE(without_accents("\u0301a").from_start);  // it was the second
  // Taken apart into a mark that goes and one that stays: what is left is still of the first character.
  NormalText kannada = without_accents("\u0CC8");
  EXPECT_EQ(kannada.text, "\u0CD6");
  EXPECT_TRUE(kannada.from_start);
  NormalText spaces{"  a"};
  strip_normalizer(StripSide::left)->apply(spaces);
  EXPECT_EQ(spaces.text, "a");
  EXPECT_FALSE(spaces.from_start);
  // Text that replaces several characters comes from the last of them.
  for (auto [pattern, content, from_start] : {std::tuple("``", "x", false), std::tuple("`", "x", true),
                                              std::tuple("`", "", false), std::tuple("`", "xy", true)}) {
    NormalText quotes{"``a"};
    literal_normalizer(pattern, content)->apply(quotes);
    EXPECT_EQ(quotes.from_start, from_start) << pattern << content;
  }
}

}  // namespace
}  // namespace sextant
