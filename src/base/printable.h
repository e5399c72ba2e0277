// Text that came from outside (arguments, names of files and tensors, values), as a message may show it: what would
// move a terminal's cursor, ring its bell or turn its direction is written as an escape, and long text is shortened.
#pragma once

#include <string>
#include <string_view>

namespace sextant {

enum class Newlines { escaped, kept };

std::string printable(std::string_view text, Newlines newlines = Newlines::escaped);

// Where the first character stands that is not UTF-8 or that printable() would escape, line ends and tabs aside; npos
// when there is none. For files of text whose fields are shown later, in tables and in JSON.
size_t first_unprintable(std::string_view text);

}  // namespace sextant
