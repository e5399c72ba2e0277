#include "stories/stories.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/rng.h"
#include "stories/stories_grammar.h"

namespace sextant {
namespace {

// Tells one story: draws a theme and a plot, then each variable at its first use.
class Teller {
 public:
  Teller(uint64_t seed, uint64_t index)
      : random_(seed, "story", index),
        chosen_(grammar_.variables.size()),
        theme_(random_.below(draws_++, grammar_.themes.size())) {}

  std::string tell() {
    const Entry& plot = grammar_.plots[random_.below(draws_++, grammar_.plots.size())];
    for (const Element& beat : plot.parts[0]) {
      if (beat.kind == Element::Kind::slot)
        write_beat(chosen(beat.variable));
      else
        end_paragraph();
    }
    end_paragraph();
    return std::move(text_);
  }

 private:
  void write_beat(const Entry& beat) {
    for (const Phrase& sentence : beat.parts) {
      std::vector<std::string> tokens;
      expand(sentence, tokens);
      if (!text_.empty() && text_.back() != '\n') text_ += ' ';
      text_ += write_sentence(tokens);
    }
  }

  void end_paragraph() {
    if (!text_.empty() && text_.back() != '\n') text_ += '\n';
  }

  void expand(const Phrase& phrase, std::vector<std::string>& tokens) {
    for (const Element& element : phrase) {
      if (element.kind == Element::Kind::slot)
        expand(chosen(element.variable).parts.at(element.field), tokens);
      else
        tokens.push_back(element.word);
    }
  }

  const Entry& chosen(size_t variable) {
    size_t word_class = grammar_.variables[variable].word_class;
    const auto& entries = grammar_.classes[word_class].entries(theme_);
    while (!chosen_[variable]) {
      size_t entry = draw_by_rank(entries.size());
      bool is_taken = false;
      for (size_t other = 0; other < chosen_.size(); ++other)
        is_taken |= grammar_.variables[other].word_class == word_class && chosen_[other] == entry;
      if (!is_taken) chosen_[variable] = entry;
    }
    return entries[*chosen_[variable]];
  }

  // Entry k of a class has the weight 1 / (k + 1), Zipf's law: a small model meets most of what it writes often.
  size_t draw_by_rank(size_t count) {
    auto weight = [](size_t k) { return 1.0 / static_cast<double>(k + 1); };
    double total = 0;
    for (size_t k = 0; k < count; ++k) total += weight(k);
    double left = random_.uniform(draws_++) * total;
    for (size_t k = 0; k + 1 < count; ++k)
      if ((left -= weight(k)) < 0) return k;
    return count - 1;
  }

  const StoryGrammar& grammar_ = story_grammar();
  Random random_;
  uint64_t draws_ = 0;
  std::vector<std::optional<size_t>> chosen_;
  size_t theme_;
  std::string text_;
};

}  // namespace

std::string story(uint64_t seed, uint64_t index) {
  return Teller(seed, index).tell();
}

uint64_t for_each_story(const StoryRange& range, const std::function<void(std::string_view)>& use) {
  uint64_t index = range.first;
  for (uint64_t told = 0; told < range.bytes; ++index) {
    std::string text = story(range.seed, index);
    told += text.size();
    use(text);
  }
  return index;
}

}  // namespace sextant
