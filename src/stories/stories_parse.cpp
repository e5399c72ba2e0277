#include <algorithm>
#include <cctype>
#include <optional>

#include "stories/stories.h"
#include "stories/stories_grammar.h"

namespace sextant {
namespace {

// Matches one sentence against the grammar by backtracking: a slot not yet bound tries every entry of its class.
class Matcher {
 public:
  explicit Matcher(const std::vector<std::string>& tokens)
      : tokens_(tokens), capital_(capital_places(tokens)), bound_(grammar_.variables.size()) {}

  bool matches(const Phrase& sentence) { return match({sentence.data(), sentence.data() + sentence.size()}, 0); }

 private:
  // Elements that are still to be matched: the rest of a phrase, then the rest of the phrase that contains its slot.
  struct Rest {
    const Element* begin;
    const Element* end;
    const Rest* outer = nullptr;
  };

  bool match(Rest rest, size_t at) {
    while (rest.begin == rest.end) {
      if (!rest.outer) return at == tokens_.size();
      rest = *rest.outer;
    }
    const Element& element = *rest.begin++;
    if (element.kind == Element::Kind::slot) return match_slot(element, rest, at);
    return at < tokens_.size() && is_same(element, at) && match(rest, at + 1);
  }

  bool is_same(const Element& element, size_t at) const {
    // Which of the two it must be was checked on the whole sentence.
    if (element.kind == Element::Kind::article) return fold_case(tokens_[at]) == "a" || fold_case(tokens_[at]) == "an";
    return tokens_[at] == (capital_[at] ? capitalised(element.word) : element.word);
  }

  bool match_slot(const Element& slot, const Rest& rest, size_t at) {
    const WordClass& words = grammar_.classes[grammar_.variables[slot.variable].word_class];
    if (words.is_shared() || theme_) return match_entries(slot, rest, at);
    for (size_t theme = 0; theme < grammar_.themes.size(); ++theme) {
      theme_ = theme;
      if (match_entries(slot, rest, at)) return true;
    }
    theme_.reset();
    return false;
  }

  bool match_entries(const Element& slot, const Rest& rest, size_t at) {
    const auto& entries = grammar_.classes[grammar_.variables[slot.variable].word_class].entries(theme_.value_or(0));
    auto match_entry = [&](size_t entry) {
      const Phrase& part = entries[entry].parts.at(slot.field);
      return match({part.data(), part.data() + part.size(), &rest}, at);
    };
    auto& bound = bound_[slot.variable];
    if (bound) return match_entry(*bound);
    for (size_t entry = 0; entry < entries.size(); ++entry) {
      if (is_taken(slot.variable, entry)) continue;
      bound = entry;
      if (match_entry(entry)) return true;
    }
    bound.reset();
    return false;
  }

  // Two variables of one class never stand for the same entry: the hero is not her own friend.
  bool is_taken(size_t variable, size_t entry) const {
    for (size_t other = 0; other < bound_.size(); ++other)
      if (other != variable && bound_[other] == entry &&
          grammar_.variables[other].word_class == grammar_.variables[variable].word_class)
        return true;
    return false;
  }

  const StoryGrammar& grammar_ = story_grammar();
  const std::vector<std::string>& tokens_;
  std::vector<bool> capital_;
  std::vector<std::optional<size_t>> bound_;
  std::optional<size_t> theme_;
};

bool is_end(char c) {
  return c == '.' || c == '!' || c == '?';
}

bool continues_sentence(std::string_view text) {
  size_t next = text.find_first_not_of(' ');
  return next != std::string_view::npos && std::islower(static_cast<unsigned char>(text[next]));
}

}  // namespace

bool parses(std::string_view sentence) {
  std::vector<std::string> tokens = story_tokens(sentence);
  if (tokens.empty() || write_sentence(tokens) != sentence) return false;  // spacing, capitals, a or an
  static const std::vector<const Phrase*> sentences = story_grammar().sentences();
  Matcher matcher(tokens);
  return std::ranges::any_of(sentences, [&](const Phrase* known) { return matcher.matches(*known); });
}

bool is_corpus_word(std::string_view word) {
  return story_grammar().words.contains(fold_case(word));
}

size_t corpus_word_count() {
  return story_grammar().words.size();
}

std::vector<std::string_view> split_sentences(std::string_view text) {
  std::vector<std::string_view> sentences;
  size_t begin = 0;
  bool quoted = false;
  auto finish = [&](size_t end) {
    if (size_t first = text.find_first_not_of(" \n", begin); first < end)
      sentences.push_back(text.substr(first, end - first));
    begin = end;
    quoted = false;
  };
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') finish(i);
    if (text[i] == '"') quoted = !quoted;
    bool ends_quote = text[i] == '"' && !quoted && i > begin && is_end(text[i - 1]);
    if ((is_end(text[i]) && !quoted) || (ends_quote && !continues_sentence(text.substr(i + 1)))) finish(i + 1);
  }
  return sentences;
}

StoryCheck check_stories(std::string_view text) {
  StoryCheck check;
  for (std::string_view sentence : split_sentences(text)) {
    ++check.sentences;
    check.parsed += parses(sentence);
    for (const std::string& token : story_tokens(sentence)) {
      if (!is_story_word(token)) continue;
      ++check.words;
      check.known += is_corpus_word(token);
    }
  }
  return check;
}

}  // namespace sextant
