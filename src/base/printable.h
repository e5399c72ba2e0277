// Text that came from outside (arguments, names of files and tensors, values), as a message may show it: what would
// move a terminal's cursor, ring its bell or turn its direction is written as an escape, and long text is shortened.
#pragma once

#include <string>
#include <string_view>

namespace sextant {

enum class Newlines { escaped, kept };

std::string printable(std::string_view text, Newlines newlines = Newlines::escaped);

// The same of all of a text, however long it is.
std::string without_controls(std::string_view text, Newlines newlines = Newlines::escaped);

// Of a text of JSON: in its strings the escapes are those of JSON, so that it says the same.
std::string escaped_json(std::string_view json);

// UTF-8, as formats of other programs ask for: bytes that are not are written as \xHH, all else stays.
std::string utf8_text(std::string_view text);

// Where the first character stands that is not UTF-8 or that printable() would escape, line ends and tabs aside; npos
// when there is none. For files of text whose fields are shown later, in tables and in JSON.
size_t first_unprintable(std::string_view text);

}  // namespace sextant
