#include "base/text_style.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

namespace sextant {

namespace {

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value && *value != '\0';
}

// Select Graphic Rendition parameters of ECMA-48: bold where the text must not be overlooked.
std::string_view parameters_of(TextStyle style) {
  switch (style) {
    case TextStyle::good:
      return "32";
    case TextStyle::doubtful:
      return "33";
    case TextStyle::bad:
      return "1;31";
  }
  return "";
}

}  // namespace

Colours colours_of(int descriptor) {
  const char* terminal = std::getenv("TERM");
  bool dumb = !terminal || std::string_view(terminal) == "dumb";
  return ::isatty(descriptor) == 1 && !dumb && !is_set("NO_COLOR") ? Colours::on : Colours::off;
}

std::string styled(std::string_view text, TextStyle style, Colours colours) {
  if (colours == Colours::off) return std::string(text);
  return fmt::format("\033[{}m{}\033[0m", parameters_of(style), text);
}

}  // namespace sextant
