// Choice: a value that a config key or a file may name, with its word and its meaning. An enum's choices are declared
// beside it, in the order of its values, and found by overload:
//
//   enum class ContextMode : uint8_t { ring, ulysses };
//   inline constexpr Choice<ContextMode> kContextModes[] = {
//       {ContextMode::ring, "ring", "keys and values travel around a ring"},
//       {ContextMode::ulysses, "ulysses", "sequences are exchanged for heads"},
//   };
//   constexpr const auto& choices_of(ContextMode) { return kContextModes; }
//
// A record that begins with a Choice may say more of each value. Keys of the config, their words, help and schema are
// made of these; nothing else compares words.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace sextant {

template <class T>
struct Choice {
  T value;
  std::string_view word;
  std::string_view meaning = {};  // a phrase that may follow the word in a list; empty where the word says it
};

template <class Enum>
concept HasChoices = std::is_enum_v<Enum> && requires(Enum value) {
  choices_of(value);
};

// A choice without its value: all that help, schemas and completions need.
struct ChoiceText {
  std::string_view word, meaning;
};

// The words of an array of choices, as static data.
template <const auto& kChoices>
inline constexpr auto kTextsOf = [] {
  std::array<ChoiceText, std::size(kChoices)> texts{};
  for (size_t i = 0; i < texts.size(); ++i) texts[i] = {kChoices[i].word, kChoices[i].meaning};
  return texts;
}();

// The row of a value; the choices of an enum have one for each.
template <HasChoices Enum>
constexpr const auto& choice_of(Enum value) {
  const auto& choices = choices_of(value);
  for (const auto& choice : choices)
    if (choice.value == value) return choice;
  return choices[0];
}

template <HasChoices Enum>
constexpr std::string_view word_of(Enum value) {
  return choice_of(value).word;
}

template <class Choices>
constexpr auto value_in(const Choices& choices, std::string_view word)
    -> std::optional<std::remove_cvref_t<decltype(choices[0].value)>> {
  for (const auto& choice : choices)
    if (choice.word == word) return choice.value;
  return std::nullopt;
}

template <HasChoices Enum>
constexpr std::optional<Enum> value_of_word(std::string_view word) {
  return value_in(choices_of(Enum{}), word);
}

// "none, norms or full"
std::string words_text(std::span<const ChoiceText> choices);

// "`none`: everything is kept; `full`: only what enters each block is"; empty where no choice has a meaning.
std::string meanings_text(std::span<const ChoiceText> choices);

template <HasChoices Enum>
std::string words_text_of() {
  std::string text;
  for (const auto& choice : choices_of(Enum{})) text += (text.empty() ? "" : ", ") + std::string(choice.word);
  return text;
}

}  // namespace sextant
