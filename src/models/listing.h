// The output of `sextant list models`: every architecture with its options and defaults, and every preset.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/model_def.h"

namespace sextant {

// `options_of` names the options of an architecture as the config has them.
std::string list_of_models(std::vector<std::string_view> (*options_of)(const ModelDef& def));

}  // namespace sextant
