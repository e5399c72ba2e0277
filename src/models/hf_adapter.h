// Directories that hold an adapter of PEFT (LoRA and the like) and not a model.
#pragma once

#include <filesystem>
#include <optional>

#include "base/error.h"

namespace sextant {

// nullopt: the directory has no adapter_config.json, or a config.json beside it.
std::optional<Complaint> complaint_about_adapter(const std::filesystem::path& directory);

}  // namespace sextant
