#include "models/presets.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "models/hf_type.h"
#include "models/models.h"

namespace sextant {

std::span<const Preset> presets() {
  static const std::vector<Preset> kPresets = [] {
    std::vector<Preset> all;
    for (const ModelDef* def : all_models())
      for (Preset& preset : def->presets()) {
        preset.spec.architecture = def->name;
        all.push_back(std::move(preset));
      }
    return all;
  }();
  return kPresets;
}

Preset preset_of(const PresetRow& row, ModelSpec common) {
  common.layers = row.layers;
  common.hidden = row.hidden;
  common.heads = row.heads;
  common.kv_heads = row.kv_heads > 0 ? row.kv_heads : row.heads;
  common.head_dim = row.head_dim > 0 ? row.head_dim : row.hidden / row.heads;
  common.ffn = row.ffn > 0 ? row.ffn : 4 * row.hidden;
  return {row.name, row.about, std::move(common)};
}

const Preset* find_preset(std::string_view name) {
  for (const Preset& preset : presets())
    if (preset.name == name) return &preset;
  return nullptr;
}

std::string why_unsupported(std::string_view model) {
  if (find_preset(model) || find_hf_type(model)) return "";
  std::string name(model);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  auto mentions = [&](std::initializer_list<std::string_view> words) {
    return std::any_of(words.begin(), words.end(),
                       [&](std::string_view word) { return name.find(word) != std::string::npos; });
  };
  if (mentions({"mixtral", "moe", "deepseek", "dbrx", "grok", "llama4", "llama-4", "gpt_oss", "gpt-oss", "switch",
                "glam", "jamba"})) {
    std::vector<std::string_view> known;
    for (const ModelDef* def : all_models())
      if (def->has_experts) known.push_back(def->about);
    return fmt::format("of models with experts only {} are supported yet", fmt::join(known, ", "));
  }
  return "";
}

}  // namespace sextant
