// Colours of text on terminals.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sextant {

enum class Colours : uint8_t { off, on };

// On for a descriptor that is a terminal, unless NO_COLOR is set to anything (no-color.org) or TERM is "dumb".
Colours colours_of(int descriptor);

enum class TextStyle : uint8_t { good, doubtful, bad };  // green, yellow, red

std::string styled(std::string_view text, TextStyle style, Colours colours);

}  // namespace sextant
