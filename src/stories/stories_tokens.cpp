#include <algorithm>
#include <array>
#include <cctype>

#include "stories/stories_grammar.h"

namespace sextant {
namespace {

// Bytes of other alphabets count as letters: they make an unknown word, not punctuation.
bool is_letter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || static_cast<unsigned char>(c) >= 0x80;
}

bool ends_sentence(std::string_view token) {
  return token == "." || token == "!" || token == "?";
}

bool takes_an(std::string_view word) {
  constexpr std::array<std::string_view, 6> kLikeYou = {"uni", "use", "one", "eu", "ukulele", "usual"};
  constexpr std::array<std::string_view, 3> kSilentH = {"honest", "hour", "heir"};
  std::string folded = fold_case(word);
  auto begins = [&](std::string_view prefix) { return folded.starts_with(prefix); };
  if (std::ranges::any_of(kSilentH, begins)) return true;
  if (std::ranges::any_of(kLikeYou, begins)) return false;
  return !folded.empty() && std::string_view("aeiou").find(folded[0]) != std::string_view::npos;
}

bool is_article(std::string_view token) {
  return token == "a" || token == "an" || token == "A" || token == "An";
}

}  // namespace

std::string fold_case(std::string_view word) {
  std::string folded(word);
  for (char& c : folded) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return folded;
}

bool is_story_word(std::string_view token) {
  return !token.empty() && is_letter(token[0]);
}

std::vector<std::string> story_tokens(std::string_view text) {
  std::vector<std::string> tokens;
  for (size_t i = 0; i < text.size();) {
    size_t end = i + 1;
    if (text[i] == ' ') {
      i = end;
      continue;
    }
    if (is_letter(text[i]) || text.substr(i, 2) == "'s")
      while (end < text.size() && is_letter(text[end])) ++end;
    tokens.emplace_back(text.substr(i, end - i));
    i = end;
  }
  return tokens;
}

std::vector<bool> capital_places(const std::vector<std::string>& tokens) {
  std::vector<bool> places(tokens.size());
  bool quoted = false, capital = true;
  for (size_t i = 0; i < tokens.size(); ++i) {
    places[i] = capital && is_story_word(tokens[i]);
    if (tokens[i] == "\"")
      capital = quoted = !quoted;  // what follows the end of a quotation goes on in lower case
    else
      capital = ends_sentence(tokens[i]);
  }
  return places;
}

std::string capitalised(std::string word) {
  if (!word.empty()) word[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(word[0])));
  return word;
}

std::string write_sentence(const std::vector<std::string>& tokens) {
  std::string text;
  std::vector<bool> capital = capital_places(tokens);
  bool quoted = false, space = false;
  for (size_t i = 0; i < tokens.size(); ++i) {
    std::string token = tokens[i];
    bool is_mark = !is_story_word(token), is_quote = token == "\"";
    if (is_article(token) && i + 1 < tokens.size()) token = takes_an(tokens[i + 1]) ? "an" : "a";
    if (capital[i]) token = capitalised(std::move(token));
    if (space && (!is_mark || (is_quote && !quoted))) text += ' ';
    text += token;
    if (is_quote) quoted = !quoted;
    space = !(is_quote && quoted);
  }
  return text;
}

}  // namespace sextant
