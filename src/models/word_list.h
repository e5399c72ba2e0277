// Lists of words such as "pre|post": the names of an enum's values, in their order. Schemas of config keys take them as
// they are.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace sextant {

constexpr std::string_view word_at(std::string_view list, size_t index) {
  for (; index > 0; --index) list.remove_prefix(list.find('|') + 1);
  return list.substr(0, list.find('|'));
}

constexpr size_t word_count(std::string_view list) {
  size_t count = 1;
  for (char c : list) count += c == '|' ? 1 : 0;
  return count;
}

template <class Enum>
std::optional<Enum> value_of_word(std::string_view list, std::string_view word) {
  for (size_t i = 0; i < word_count(list); ++i)
    if (word_at(list, i) == word) return static_cast<Enum>(i);
  return std::nullopt;
}

}  // namespace sextant
