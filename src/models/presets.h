// Published models by name; each is a row in its architecture's file.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "models/model_def.h"

namespace sextant {

std::span<const Preset> presets();

// nullptr when there is no such preset.
const Preset* find_preset(std::string_view name);

// For a model by preset name or Hugging Face model type that we know of and cannot compute: why. Empty for all others.
std::string why_unsupported(std::string_view model);

// The sizes of one model, as rows of a table; 0: heads, 4 hidden, hidden / heads.
struct PresetRow {
  std::string_view name, about;
  int64_t layers, hidden, heads;
  int64_t kv_heads = 0, ffn = 0, head_dim = 0;
};

// `common` is what the models of a family have in common.
Preset preset_of(const PresetRow& row, ModelSpec common);

}  // namespace sextant
