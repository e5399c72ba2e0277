#include "app/old_spellings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "app/page_origin.h"
#include "base/error.h"

namespace sextant {

namespace {

// Options that `plan` had, and the verb that has them now, which is the one of the first row that a command line has.
// `goes`: the option only chose what plan did, and is left out; a value that it was given stays.
struct MovedOption {
  std::string_view option, verb;
  enum class Fate : uint8_t { stays, goes } fate = Fate::stays;
};
using enum MovedOption::Fate;
constexpr std::array kMoved{
    MovedOption{"--validate", "validate", goes},
    MovedOption{"--calibrate", "validate"},
    MovedOption{"--hold-out", "validate"},
    MovedOption{"--memory", "validate"},
    MovedOption{"--published", "published", goes},
    MovedOption{"--search", "search", goes},
    MovedOption{"--serve", "plan-serving", goes},
    MovedOption{"--only", "search"},
    MovedOption{"--devices", "search"},
    MovedOption{"--headroom", "search"},
    MovedOption{"--write", "search"},
    MovedOption{"--prompt", "plan-serving"},
    MovedOption{"--context", "plan-serving"},
    MovedOption{"--compute", "laws"},
    MovedOption{"--params", "laws"},
    MovedOption{"--inference-tokens", "laws"},
    MovedOption{"--fit", "laws"},
};

// Of `plan`, options without a value; all others take the next word, but for those whose value is optional.
constexpr std::array<std::string_view, 12> kFlags{"--json",     "--search",  "--serve", "--calibrate",
                                                  "--hold-out", "--memory",  "-h",      "-q",
                                                  "--quiet",    "--verbose", "-v",      "--help"};
constexpr std::array<std::string_view, 2> kOptionalValue{"--validate", "--published"};

std::string_view name_part(std::string_view word) {
  return word.substr(0, word.find('='));
}

template <class Names>
bool contains(const Names& names, std::string_view name) {
  return std::ranges::count(names, name) > 0;
}

bool has_config(const std::vector<std::string>& words) {
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (!word.starts_with('-')) return true;
    if (word.find('=') == word.npos && !contains(kFlags, word) && !contains(kOptionalValue, word)) ++i;
  }
  return false;
}

bool has_token_budget(const std::vector<std::string>& words) {
  for (size_t i = 1; i < words.size(); ++i) {
    if (words[i].starts_with("--tokens=")) return true;
    if (words[i] == "--tokens" && i + 1 < words.size() && !words[i + 1].starts_with('-')) return true;
  }
  return false;
}

// The verb that does what these words of `plan` did; nothing where that is still plan.
std::string_view verb_of_plan(const std::vector<std::string>& words) {
  for (const MovedOption& moved : kMoved)
    if (std::ranges::any_of(words, [&](const std::string& word) { return name_part(word) == moved.option; }))
      return moved.verb;
  return has_token_budget(words) && !has_config(words) ? "laws" : "";
}

// A word of `plan` as the verb takes it; several where a value stays, none where the word goes.
std::vector<std::string> present_word(const std::string& word, std::string_view verb) {
  std::string_view name = name_part(word);
  auto moved = std::ranges::find_if(
      kMoved, [&](const MovedOption& m) { return m.option == name && m.verb == verb && m.fate == goes; });
  if (moved != kMoved.end()) {
    if (name.size() == word.size()) return {};
    return {word.substr(name.size() + 1)};
  }
  if (name == "--stack") return {"--software" + word.substr(name.size())};
  return {word};
}

}  // namespace

std::optional<std::vector<std::string>> present_spelling(const std::vector<std::string>& words) {
  if (words.empty() || words.front() != "plan") return std::nullopt;
  std::string_view verb = verb_of_plan(words);
  std::vector<std::string> present{verb.empty() ? "plan" : std::string(verb)};
  for (size_t i = 1; i < words.size(); ++i)
    for (std::string& word : present_word(words[i], verb)) present.push_back(std::move(word));
  if (present == words) return std::nullopt;
  return present;
}

void refuse_old_spelling(const std::vector<std::string>& words) {
  std::optional<std::vector<std::string>> present = present_spelling(words);
  if (!present) return;
  throw UserError({.place = "plan",
                   .got = present->front() == "plan" ? "--stack is an old name of --software"
                                                     : fmt::format("this is the verb {} now", present->front()),
                   .expected = "the command below",
                   .hint = command_text(*present)});
}

}  // namespace sextant
