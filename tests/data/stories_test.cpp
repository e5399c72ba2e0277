// The demo's corpus: large and varied enough, the same every time, and what it tells is what its parser accepts.
#include "data/stories.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/rng.h"

namespace sextant {
namespace {

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  for (char c : text) {
    if (std::isalpha(static_cast<unsigned char>(c))) word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (!word.empty()) words.push_back(std::exchange(word, ""));
  }
  if (!word.empty()) words.push_back(word);
  return words;
}

TEST(Stories, FiveMegabytesHoldFifteenHundredWords) {
  std::set<std::string> distinct;
  uint64_t bytes = 0;
  for_each_story({.bytes = 5'000'000}, [&](std::string_view text) {
    bytes += text.size();
    for (std::string& word : words_of(text)) distinct.insert(std::move(word));
  });
  EXPECT_GE(bytes, 5'000'000u);
  EXPECT_GE(distinct.size(), 1500u);
}

TEST(Stories, DependOnSeedAndIndexOnly) {
  EXPECT_EQ(story(1, 7), story(1, 7));
  EXPECT_NE(story(1, 7), story(1, 8));
  EXPECT_NE(story(1, 7), story(2, 7));
}

TEST(Stories, EverySentenceParsesAndEveryWordIsKnown) {
  std::string text;
  for (uint64_t i = 0; i < 400; ++i) text += story(3, i) + "\n";
  StoryCheck check = check_stories(text);
  EXPECT_GT(check.sentences, 2000u);
  EXPECT_EQ(check.parsed, check.sentences);
  EXPECT_EQ(check.known, check.words);
  for (std::string_view sentence : split_sentences(text)) EXPECT_TRUE(parses(sentence)) << sentence;
}

TEST(Stories, ShuffledSentencesAndStrangersAreRefused) {
  int refused = 0, tried = 0;
  for (uint64_t i = 0; i < 60; ++i) {
    std::string text = story(4, i);
    for (std::string_view sentence : split_sentences(text)) {
      std::vector<std::string> words;
      std::string rest(sentence);
      for (size_t at = 0; (at = rest.find(' ')) != std::string::npos; rest.erase(0, at + 1)) words.push_back(rest.substr(0, at));
      words.push_back(rest);
      if (words.size() < 5) continue;
      std::vector<std::string> shuffled = words;
      std::rotate(shuffled.begin() + 1, shuffled.begin() + 3, shuffled.end() - 1);
      std::string joined;
      for (const std::string& word : shuffled) joined += (joined.empty() ? "" : " ") + word;
      if (joined == sentence) continue;
      ++tried;
      refused += !parses(joined);
    }
  }
  EXPECT_GT(tried, 200);
  EXPECT_EQ(refused, tried);
  EXPECT_FALSE(parses("The quantum flux was renormalised."));
  EXPECT_FALSE(parses(""));
  EXPECT_FALSE(is_corpus_word("quantum"));
  EXPECT_TRUE(is_corpus_word("friend"));
}

}  // namespace
}  // namespace sextant
