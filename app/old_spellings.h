// Commands of earlier versions: each is refused with the command that says the same today.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace sextant {

// The words after "sextant" as they are to be typed today; nothing where the command is no old spelling.
std::optional<std::vector<std::string>> present_spelling(const std::vector<std::string>& words);

// UserError with the present spelling, ready to paste, of a command line that has an old one.
void refuse_old_spelling(const std::vector<std::string>& words);

}  // namespace sextant
