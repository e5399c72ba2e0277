#include "models/presets.h"

#include <algorithm>
#include <cctype>

namespace sextant {

std::span<const Preset> presets() {
  static const std::vector<Preset> kPresets = [] {
    std::vector<Preset> all;
    for (auto family : {gpt_presets, alibi_presets, llama_presets, qwen_presets, wide_presets}) {
      std::vector<Preset> rows = family();
      all.insert(all.end(), rows.begin(), rows.end());
    }
    return all;
  }();
  return kPresets;
}

const Preset* find_preset(std::string_view name) {
  for (const Preset& preset : presets())
    if (preset.name == name) return &preset;
  return nullptr;
}

std::string why_unsupported(std::string_view model) {
  std::string name(model);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  auto mentions = [&](std::initializer_list<std::string_view> words) {
    return std::any_of(words.begin(), words.end(),
                       [&](std::string_view word) { return name.find(word) != std::string::npos; });
  };
  if (mentions({"deepseek"})) return "models with experts and latent attention are not supported yet";
  if (mentions({"mixtral", "moe", "dbrx", "grok", "llama4", "llama-4", "gpt_oss", "gpt-oss", "8x7b", "8x22b", "switch",
                "glam", "-a3b", "-a22b", "jamba"}))
    return "models with experts are not supported yet";
  return "";
}

}  // namespace sextant
