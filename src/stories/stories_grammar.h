// The compiled story grammar. Enters: the text of stories_text.h. Leaves: classes of entries whose parts are words and
// slots, for the teller (stories.cpp) and the parser (stories_parse.cpp). Must hold: every slot names a known class and
// field, every theme fills every theme class; a mistake in the text is a BUG at first use.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace sextant {

struct Element {
  enum class Kind { word, article, slot };
  Kind kind = Kind::word;
  std::string word;     // a word or a punctuation mark
  size_t variable = 0;  // of a slot
  size_t field = 0;     // of a slot
};
using Phrase = std::vector<Element>;

// The parts are the fields of a word, the sentences of a beat, or (one part) the beats of a plot.
struct Entry {
  std::vector<Phrase> parts;
};

struct WordClass {
  std::string name;
  std::vector<std::string> fields;
  std::vector<std::vector<Entry>> by_theme;  // one list when all themes share it

  bool is_shared() const { return by_theme.size() == 1; }
  const std::vector<Entry>& entries(size_t theme) const { return by_theme[is_shared() ? 0 : theme]; }
};

struct Variable {
  std::string name;
  size_t word_class = 0;
};

struct StoryGrammar {
  std::vector<std::string> themes;
  std::vector<WordClass> classes;
  std::vector<Variable> variables;
  std::vector<Entry> plots;
  std::set<std::string, std::less<>> words;  // case-folded

  std::vector<const Phrase*> sentences() const;  // all sentences of all beats
};

const StoryGrammar& story_grammar();  // compiled at first use

// Words, "'s" and punctuation marks of a text; anything unknown becomes a token that no grammar has.
std::vector<std::string> story_tokens(std::string_view text);
// One sentence from its tokens: spaces, capitals, and a or an.
std::string write_sentence(const std::vector<std::string>& tokens);
// Where a sentence, a quotation, or a sentence inside a quotation begins.
std::vector<bool> capital_places(const std::vector<std::string>& tokens);
std::string capitalised(std::string word);
bool is_story_word(std::string_view token);  // not punctuation, not 's
std::string fold_case(std::string_view word);

}  // namespace sextant
