#include "stories/stories_grammar.h"

#include <algorithm>
#include <cctype>
#include <iterator>

#include "base/error.h"
#include "stories/stories_text.h"

namespace sextant {
namespace {

std::string_view trimmed(std::string_view text) {
  size_t begin = text.find_first_not_of(" \n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \n") - begin + 1);
}

std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> pieces;
  while (true) {
    size_t end = text.find_first_of(separators);
    if (auto piece = trimmed(text.substr(0, end)); !piece.empty()) pieces.push_back(piece);
    if (end == std::string_view::npos) return pieces;
    text.remove_prefix(end + 1);
  }
}

// "name(field, field): entries": the length of the part before the colon, or 0 where a line is no such head.
size_t head_length(std::string_view line) {
  size_t end = 0;
  while (end < line.size() && (std::islower(static_cast<unsigned char>(line[end])) || line[end] == '_')) ++end;
  if (end > 0 && end < line.size() && line[end] == '(') end = std::min(line.find(')', end), line.size() - 1) + 1;
  return end < line.size() && line[end] == ':' ? end : 0;
}

struct Declaration {
  std::string_view name;
  std::vector<std::string_view> fields;
  std::vector<std::string_view> entries;
};

std::vector<Declaration> declarations(std::string_view text) {
  std::vector<Declaration> found;
  for (std::string_view line : split(text, "\n")) {
    if (size_t head = head_length(line)) {
      auto names = split(line.substr(0, head), "(,)");
      found.push_back({names[0], {names.begin() + 1, names.end()}, {}});
      line.remove_prefix(head + 1);
    }
    BUG_IF(found.empty(), "story text before the first class: {}", line);
    auto& entries = found.back().entries;
    if (line.starts_with('/') && !entries.empty()) {
      const char* begin = entries.back().data();  // the lines follow each other in the text
      entries.back() = {begin, static_cast<size_t>(line.data() + line.size() - begin)};
      continue;
    }
    for (std::string_view entry : split(line, "|")) entries.push_back(entry);
  }
  return found;
}

class Compiler {
 public:
  StoryGrammar compile() {
    std::vector<Declaration> words = declarations(story_words()), beats = declarations(story_beats()), themes;
    for (std::string_view text : story_themes()) std::ranges::move(declarations(text), std::back_inserter(themes));
    auto theme_count = static_cast<size_t>(std::ranges::count(themes, "theme", &Declaration::name));
    for (const Declaration& shared : words) add_class(shared, 1);
    for (const Declaration& themed : declarations(story_theme_classes())) add_class(themed, theme_count);
    for (const Declaration& beat : beats) add_class(beat, 1);
    // Entries come after all classes, because their slots may name any.
    for (const Declaration& shared : words) fill(shared, 0);
    fill_themes(themes);
    for (const Declaration& beat : beats) fill(beat, 0);
    for (const Declaration& plots : declarations(story_plots()))
      for (std::string_view plot : plots.entries) grammar_.plots.push_back({{phrase(plot)}});
    for (const WordClass& filled : grammar_.classes)
      for (const auto& entries : filled.by_theme) BUG_IF(entries.empty(), "story class {} is empty", filled.name);
    return std::move(grammar_);
  }

 private:
  void add_class(const Declaration& declared, size_t themes) {
    grammar_.classes.push_back({std::string(declared.name),
                                {declared.fields.begin(), declared.fields.end()},
                                std::vector<std::vector<Entry>>(themes)});
  }

  void fill_themes(const std::vector<Declaration>& text) {
    for (const Declaration& words : text) {
      if (words.name == "theme")
        grammar_.themes.emplace_back(words.entries.at(0));
      else
        fill(words, grammar_.themes.size() - 1);
    }
  }

  void fill(const Declaration& declared, size_t theme) {
    size_t index = class_named(declared.name);
    for (std::string_view text : declared.entries) {
      Entry entry;
      if (text != "-")
        for (std::string_view part : split(text, "/")) entry.parts.push_back(phrase(part));
      WordClass& words = grammar_.classes[index];
      bool is_whole = words.fields.empty() || entry.parts.size() == words.fields.size();
      BUG_IF(!is_whole, "story class {} has not {} fields in: {}", words.name, words.fields.size(), text);
      words.by_theme.at(theme).push_back(std::move(entry));
    }
  }

  Phrase phrase(std::string_view text) {
    Phrase elements;
    while (!text.empty()) {
      size_t slot = std::min(text.find('['), text.size());
      for (std::string& token : story_tokens(text.substr(0, slot))) {
        bool is_article = fold_case(token) == "a" || fold_case(token) == "an";
        if (is_story_word(token)) grammar_.words.insert(fold_case(token));
        elements.push_back({is_article ? Element::Kind::article : Element::Kind::word, std::move(token)});
      }
      if (slot == text.size()) break;
      size_t end = text.find(']', slot);
      elements.push_back(slot_element(text.substr(slot + 1, end - slot - 1)));
      text.remove_prefix(end + 1);
    }
    return elements;
  }

  Element slot_element(std::string_view text) {
    std::string_view name = text.substr(0, text.find('.'));
    Element slot{Element::Kind::slot, "", variable_named(name)};
    if (name.size() == text.size()) return slot;
    const WordClass& words = grammar_.classes[grammar_.variables[slot.variable].word_class];
    auto field = std::ranges::find(words.fields, text.substr(name.size() + 1));
    BUG_IF(field == words.fields.end(), "no field for the story slot [{}]", text);
    slot.field = static_cast<size_t>(field - words.fields.begin());
    return slot;
  }

  size_t variable_named(std::string_view name) {
    auto known = std::ranges::find(grammar_.variables, name, &Variable::name);
    if (known == grammar_.variables.end()) {
      std::string_view words = name.substr(0, name.find_last_not_of("0123456789") + 1);
      known = grammar_.variables.insert(known, {std::string(name), class_named(words)});
    }
    return static_cast<size_t>(known - grammar_.variables.begin());
  }

  size_t class_named(std::string_view name) const {
    auto found = std::ranges::find(grammar_.classes, name, &WordClass::name);
    BUG_IF(found == grammar_.classes.end(), "no story class is named {}", name);
    return static_cast<size_t>(found - grammar_.classes.begin());
  }

  StoryGrammar grammar_;
};

}  // namespace

const StoryGrammar& story_grammar() {
  static const StoryGrammar grammar = Compiler().compile();
  return grammar;
}

std::vector<const Phrase*> StoryGrammar::sentences() const {
  std::vector<const Phrase*> found;
  for (const Entry& plot : plots)
    for (const Element& beat : plot.parts[0])
      if (beat.kind == Element::Kind::slot)
        for (const Entry& entry : classes[variables[beat.variable].word_class].entries(0))
          for (const Phrase& sentence : entry.parts) found.push_back(&sentence);
  std::ranges::sort(found);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace sextant
