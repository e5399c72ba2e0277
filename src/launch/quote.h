// Text inside other languages, without control characters.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sextant {

// A command of a shell: one word a line, continued by backslashes.
std::string shell_command(const std::vector<std::string>& words);
// One scalar, which reads back as exactly that text.
std::string yaml_quoted(std::string_view text);

}  // namespace sextant
