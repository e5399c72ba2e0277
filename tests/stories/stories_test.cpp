#include "stories/stories.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <string>
#include <vector>

#include "base/rng.h"

namespace sextant {
namespace {

// The tests' own idea of a word: a run of letters, case-folded.
std::vector<std::string> letter_runs(std::string_view text) {
  std::vector<std::string> words(1);
  for (unsigned char c : text) {
    if (std::isalpha(c))
      words.back() += static_cast<char>(std::tolower(c));
    else if (!words.back().empty())
      words.emplace_back();
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

std::vector<std::string> split_at_spaces(std::string_view text) {
  std::vector<std::string> pieces(1);
  for (char c : text) {
    if (c == ' ')
      pieces.emplace_back();
    else
      pieces.back() += c;
  }
  return pieces;
}

std::string join(const std::vector<std::string>& pieces) {
  std::string text;
  for (const std::string& piece : pieces) text += (text.empty() ? "" : " ") + piece;
  return text;
}

std::vector<std::string> sentences_of_stories(uint64_t count) {
  std::vector<std::string> sentences;
  for (uint64_t i = 0; i < count; ++i) {
    std::string text = story(3, i);
    for (std::string_view sentence : split_sentences(text)) sentences.emplace_back(sentence);
  }
  return sentences;
}

TEST(Stories, DependOnSeedAndIndexAlone) {
  std::string late = story(7, 1'000'000);
  std::string first = story(7, 0);
  EXPECT_EQ(story(7, 1'000'000), late);
  EXPECT_EQ(story(7, 0), first);
  EXPECT_NE(story(7, 1), first);
  EXPECT_NE(story(8, 0), first);

  std::string all, one_by_one;
  uint64_t next = for_each_story({.seed = 7, .first = 5, .bytes = 2000}, [&](std::string_view text) { all += text; });
  for (uint64_t i = 5; i < next; ++i) one_by_one += story(7, i);
  EXPECT_EQ(all, one_by_one);
  EXPECT_GE(all.size(), 2000u);
  EXPECT_LT(all.size() - story(7, next - 1).size(), 2000u);
}

TEST(Stories, CorpusIsLargeAndVaried) {
  std::set<std::string> words, openings;
  uint64_t count = for_each_story({.seed = 1, .bytes = 5'000'000}, [&](std::string_view text) {
    auto runs = letter_runs(text);
    EXPECT_GE(runs.size(), 55u) << text;
    EXPECT_LE(runs.size(), 200u) << text;
    EXPECT_EQ(text.back(), '\n');
    words.insert(runs.begin(), runs.end());
    openings.emplace(text.substr(0, text.find('\n')));
  });
  words.erase("s");  // of the possessive
  EXPECT_GE(words.size(), 1500u);
  EXPECT_GT(openings.size(), count * 9 / 10) << "stories repeat themselves";
  for (const std::string& word : words) EXPECT_TRUE(is_corpus_word(word)) << word;
  EXPECT_GE(corpus_word_count(), words.size());
}

TEST(Stories, WordsAreKnownInAnyCase) {
  EXPECT_TRUE(is_corpus_word("Mia"));
  EXPECT_TRUE(is_corpus_word("THE"));
  EXPECT_FALSE(is_corpus_word("tensor"));
  EXPECT_FALSE(is_corpus_word(""));
  EXPECT_FALSE(is_corpus_word("."));
}

TEST(Stories, ArticlesAgree) {
  const std::set<std::string> sounds_like_consonant = {"unicorn", "unicycle", "useful"}, sounds_like_vowel = {"honest"};
  size_t an_count = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    auto words = letter_runs(story(2, i));
    for (size_t k = 0; k + 1 < words.size(); ++k) {
      const std::string& next = words[k + 1];
      bool vowel =
          sounds_like_vowel.contains(next) ||
          (std::string_view("aeiou").find(next[0]) != std::string_view::npos && !sounds_like_consonant.contains(next));
      if (words[k] == "a" || words[k] == "an") {
        EXPECT_EQ(vowel, words[k] == "an") << words[k] << " " << next;
      }
      an_count += words[k] == "an";
    }
  }
  EXPECT_GT(an_count, 50u);
}

TEST(Stories, EverySentenceParses) {
  for (const std::string& sentence : sentences_of_stories(150)) EXPECT_TRUE(parses(sentence)) << sentence;
}

TEST(Stories, ShuffledWordsDoNotParse) {
  Random random(5, "shuffle");
  uint64_t draws = 0;
  size_t shuffled = 0;
  for (const std::string& sentence : sentences_of_stories(40)) {
    auto pieces = split_at_spaces(sentence);
    for (size_t k = pieces.size(); k > 1; --k) std::swap(pieces[k - 1], pieces[random.below(draws++, k)]);
    std::string mixed = join(pieces);
    if (mixed == sentence) continue;
    EXPECT_FALSE(parses(mixed)) << mixed;
    ++shuffled;
  }
  EXPECT_GT(shuffled, 300u);
}

// A word of the corpus in the wrong place: only now and then it happens to fit (another name, another adjective).
TEST(Stories, SwappedInWordsRarelyParse) {
  Random random(6, "swap");
  uint64_t draws = 0;
  auto sentences = sentences_of_stories(40);
  auto words = letter_runs(join(sentences));
  size_t accepted = 0;
  for (const std::string& sentence : sentences) {
    auto pieces = split_at_spaces(sentence);
    std::string& replaced = pieces[random.below(draws++, pieces.size())];
    replaced = words[random.below(draws++, words.size())];
    std::string changed = join(pieces);
    accepted += changed != sentence && parses(changed);
  }
  EXPECT_LT(accepted, sentences.size() / 20);
}

struct Judged {
  const char* right;
  const char* wrong;
  const char* why;
};

TEST(Stories, AgreementIsChecked) {
  const Judged pairs[] = {
      {"Mia was a kind girl who loved the beach.", "Mia was a kind boy who loved the beach.", "kind of person"},
      {"Once there was an honest girl named Mia.", "Once there was a honest girl named Mia.", "a before a vowel"},
      {"Once there was a brave girl named Mia.", "Once there was an brave girl named Mia.", "an before a consonant"},
      {"Mia felt so sad that she began to cry.", "Mia felt so sad that he began to cry.", "pronoun"},
      {"Mia felt so sad that she began to cry.", "Mia felt so sad that she begins to cry.", "tense"},
      {"\"Let's look for it,\" said Tom.", "\"Lets look for it,\" said Tom.", "no apostrophe"},
      {"It was only a red crab!", "It was only a pink crab!", "adjective of another noun"},
      {"Suddenly the sail tore in the wind.", "Suddenly the canoe tore in the wind.", "a noun with another's verb"},
      {"The crab clicked its claws to say thank you.", "The crab barked twice to say thank you.",
       "an animal as another"},
      {"Soon the boat was as good as new.", "Soon the boat were as good as new.", "number"},
      {"Soon the boat was as good as new.", "soon the boat was as good as new.", "capital"},
      {"Soon the boat was as good as new.", "Soon the Boat was as good as new.", "needless capital"},
      {"Soon the boat was as good as new.", "Soon the boat was as good as new", "no full stop"},
      {"Soon the boat was as good as new.", "Soon the boat  was as good as new.", "two spaces"},
      {"Soon the boat was as good as new.", "Soon the boat was as good as new .", "space before the stop"},
      {"\"You did it!\" cried Tom.", "You did it!\" cried Tom.", "unpaired quote"},
      {"\"You did it!\" cried Tom.", "\"you did it!\" cried Tom.", "capital in a quotation"},
      {"\"You did it!\" cried Tom.", "\"You did it!\" Cried Tom.", "capital after a quotation"},
      {"It was hard work, but they did not give up.", "It was hard work, But they did not give up.",
       "capital after a comma"},
  };
  for (const Judged& pair : pairs) {
    EXPECT_TRUE(parses(pair.right)) << pair.right;
    EXPECT_FALSE(parses(pair.wrong)) << pair.why << ": " << pair.wrong;
  }
}

TEST(Stories, ParserBearsAnything) {
  for (const char* text : {"", " ", ".", "\"", "\"\"\"", "'s", "a", "An.", "\xff\xfe.", "\n", "Mia", "[hero]."})
    EXPECT_FALSE(parses(text)) << text;
  EXPECT_FALSE(parses(std::string(100'000, 'x') + "."));
  EXPECT_FALSE(parses(std::string(100'000, '"') + "."));
}

TEST(Stories, SentencesAreSplit) {
  using Pieces = std::vector<std::string_view>;
  EXPECT_EQ(split_sentences("One. Two! Three? unfinished"), (Pieces{"One.", "Two!", "Three?"}));
  EXPECT_EQ(split_sentences("\"Stop!\" cried Tom. \"Go. Now,\" he said."),
            (Pieces{"\"Stop!\" cried Tom.", "\"Go. Now,\" he said."}));
  EXPECT_EQ(split_sentences("\"We will help you.\" \"Good!\" She ran."),
            (Pieces{"\"We will help you.\"", "\"Good!\"", "She ran."}));
  EXPECT_EQ(split_sentences("Cut off\nNext one.\n\nLast"), (Pieces{"Cut off", "Next one."}));
  EXPECT_EQ(split_sentences("\"Never closed. But a new\nParagraph. Begins."),
            (Pieces{"\"Never closed. But a new", "Paragraph.", "Begins."}));
  EXPECT_TRUE(split_sentences("").empty());
}

TEST(Stories, CheckCounts) {
  StoryCheck check =
      check_stories("It was hard work, but they did not give up. Mia zzz. \"You did it!\" cried Tom.\nThe");
  EXPECT_EQ(check.sentences, 3u);
  EXPECT_EQ(check.parsed, 2u);
  EXPECT_EQ(check.words, 10u + 2u + 5u);
  EXPECT_EQ(check.known, 10u + 1u + 5u);

  std::string text;
  for (uint64_t i = 0; i < 20; ++i) text += story(9, i) + "\n";
  StoryCheck own = check_stories(text);
  EXPECT_GT(own.sentences, 200u);
  EXPECT_EQ(own.parsed, own.sentences);
  EXPECT_EQ(own.known, own.words);
}

}  // namespace
}  // namespace sextant
