// What --json prints.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace sextant {

// Texts and names of files may be no UTF-8: what is not becomes U+FFFD.
void print_json(const nlohmann::ordered_json& json);

}  // namespace sextant
