// The built-in demo corpus: short English stories, told by a seeded grammar, so that a small model can be trained with
// nothing downloaded. The same declaration (stories_text.h) tells the stories and parses what a model writes.
//
// Enters: a seed and an index. Leaves: one story of some 60 to 200 words, in one to four paragraphs, each ended by a
// newline. Held-out stories are simply other indices. Must hold: story(seed, index) never depends on anything else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace sextant {

std::string story(uint64_t seed, uint64_t index);

struct StoryRange {
  uint64_t seed = 0;
  uint64_t first = 0;  // index of the first story
  uint64_t bytes = 0;  // stories are told until their text reaches this size
};
// Returns the index after the last story told.
uint64_t for_each_story(const StoryRange& range, const std::function<void(std::string_view)>& use);

// Does one sentence, with its final . ! or ? (and closing quote), belong to the grammar? Checked inside the sentence:
// the words and their order, spacing, capitals, punctuation, a or an; that a name keeps its pronouns, a noun its
// adjective and its verb, and whatever is mentioned twice stays the same; that its theme words come from one theme
// (most sentences have one only). Not checked: anything that needs another sentence (who "she" is, whether a crab lives
// in a castle).
bool parses(std::string_view sentence);

// The words of the grammar, case-folded, letters only; a possessive 's is no word.
bool is_corpus_word(std::string_view word);
size_t corpus_word_count();

// Sentences end at . ! or ? outside quotes, or at a closing quote after one of these unless the sentence goes on in
// lower case ("Stop!" cried Tom.). A newline ends whatever stands before it. A last piece that no . ! ? or newline
// ends is unfinished, and left out.
std::vector<std::string_view> split_sentences(std::string_view text);

struct StoryCheck {
  size_t sentences = 0;
  size_t parsed = 0;  // sentences that belong to the grammar
  size_t words = 0;
  size_t known = 0;  // words of the corpus
};
StoryCheck check_stories(std::string_view text);

}  // namespace sextant
