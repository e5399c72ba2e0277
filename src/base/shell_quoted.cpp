#include "base/shell_quoted.h"

#include <algorithm>

namespace sextant {

namespace {

bool plain_in_shell(char c) {
  constexpr std::string_view kPlain = "%+,-./:=@_";
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         kPlain.find(c) != std::string_view::npos;
}

}  // namespace

std::string shell_quoted(std::string_view word) {
  if (!word.empty() && std::ranges::all_of(word, plain_in_shell)) return std::string(word);
  std::string quoted = "'";
  for (char c : word)
    if (c == '\'')
      quoted += "'\\''";  // nothing can be escaped within single quotes: end them, a quote, begin again
    else
      quoted += c;
  return quoted + "'";
}

}  // namespace sextant
