// What toml++ does not survive, found before it sees the text. Version 3.3 has undefined behaviour for letters like é
// outside quotes and for table headers without a name ("[!a]"), and recursion as deep as a key has parts. None of it is
// valid TOML, or sensible.
#pragma once

#include <string_view>

namespace sextant {

inline constexpr int kMaxTomlKeyParts = 64;

// UserError at "PLACE:line:column". Other mistakes are left to the parser.
void guard_toml(std::string_view text, std::string_view place);

}  // namespace sextant
