// From a TOML file and `key=value` overrides to a checked RunConfig.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "config/run_config.h"

namespace sextant {

// An empty path means no file: everything comes from the overrides. UserError holds every complaint at once:
// unknown keys, values of the wrong type or out of range, and keys that do not go together.
RunConfig load_config(const std::filesystem::path& file, std::span<const std::string> overrides = {});

// The same from a text; `source` is what to call it.
RunConfig parse_config(std::string_view toml, std::string_view source, std::span<const std::string> overrides = {});

// TOML text that load_config reads as the same config: the given keys, and the defaults as comments.
std::string config_toml(const RunConfig& run);

}  // namespace sextant
