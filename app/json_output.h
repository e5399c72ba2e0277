// Output of --json.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace sextant {

// Texts and file names may contain invalid UTF-8, which becomes U+FFFD.
void print_json(const nlohmann::ordered_json& json);

}  // namespace sextant
