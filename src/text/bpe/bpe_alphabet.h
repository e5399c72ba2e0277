// The byte-level alphabet: how vocabularies write bytes as printable characters. Bytes 33-126, 161-172 and 174-255
// stand for themselves as code points; the other 68 stand for code points 256 upward, in byte order.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sextant {

// "Ġthe" for " the".
std::string name_of_bytes(std::string_view bytes);

// The inverse; empty where a character is not of the alphabet. `name` is valid UTF-8.
std::optional<std::string> bytes_of_name(std::string_view name);

// All 256 bytes, ordered by the code points that stand for them.
std::vector<char> bytes_in_alphabet_order();

}  // namespace sextant
