// Text that came from outside (arguments, names of files and tensors, values), as a message may show it: what would move a
// terminal's cursor, ring its bell or turn its direction is written as an escape, and long text is shortened.
#pragma once

#include <string>
#include <string_view>

namespace sextant {

enum class Newlines { escaped, kept };

std::string printable(std::string_view text, Newlines newlines = Newlines::escaped);

}  // namespace sextant
