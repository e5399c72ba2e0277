// The config.toml that a run left behind, read for what it says.
#pragma once

#include <filesystem>

#include "config/changes.h"

namespace sextant {

// Nothing is checked: neither whether its values go together nor whether what it names is still there (model.from).
// Keys and values that this version does not know are left out. UserError where it is no TOML or cannot be read.
ConfigValues stored_config(const std::filesystem::path& file);

}  // namespace sextant
