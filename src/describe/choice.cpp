#include "describe/choice.h"

namespace sextant {

std::string words_text(std::span<const ChoiceText> choices) {
  std::string text;
  for (size_t i = 0; i < choices.size(); ++i) {
    if (i > 0) text += i + 1 == choices.size() ? " or " : ", ";
    text += choices[i].word;
  }
  return text;
}

std::string meanings_text(std::span<const ChoiceText> choices) {
  std::string text;
  for (const ChoiceText& choice : choices) {
    if (choice.meaning.empty()) continue;
    text += text.empty() ? "`" : "; `";
    text += choice.word;
    text += "`: ";
    text += choice.meaning;
  }
  return text;
}

}  // namespace sextant
