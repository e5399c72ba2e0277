// What `sextant list models` prints: every architecture with its options and defaults, and every preset.
#pragma once

#include <string>

namespace sextant {

std::string list_of_models();

}  // namespace sextant
