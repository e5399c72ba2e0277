// The options of an architecture, as keys of the config.
#pragma once

#include <string_view>
#include <vector>

#include "models/model_def.h"

namespace sextant {

// Below "model.", and a table ("rope_scaling", "latent") by its own name: those that the config has, and that may be
// set to something else than what the architecture takes by itself.
std::vector<std::string_view> options_of(const ModelDef& def);

}  // namespace sextant
