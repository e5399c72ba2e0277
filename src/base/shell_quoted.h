// A word for a POSIX shell. In: any text without control characters. Out: what the shell reads back as exactly that
// text.
#pragma once

#include <string>
#include <string_view>

namespace sextant {

std::string shell_quoted(std::string_view word);

}  // namespace sextant
