// Published models by name. The values are those of the config.json files their authors released.
#pragma once

#include <span>
#include <string_view>

#include "models/spec.h"

namespace sextant {

struct Preset {
  std::string_view name;   // "llama3.1-8b"
  std::string_view about;  // whose it is, one noun phrase
  ModelSpec spec;
};

std::span<const Preset> presets();

// nullptr when there is no such preset.
const Preset* find_preset(std::string_view name);

}  // namespace sextant
