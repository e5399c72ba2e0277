// Words inside other languages. In: any text without control characters. Out: one word of a POSIX shell, or one YAML
// scalar, which reads back as exactly that text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sextant {

std::string shell_quoted(std::string_view word);
std::string shell_command(const std::vector<std::string>& words);  // one word a line, continued by backslashes
std::string yaml_quoted(std::string_view text);

}  // namespace sextant
