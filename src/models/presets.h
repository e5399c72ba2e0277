// Published models by name. The values are those of the config.json files their authors released, or of the papers
// where there are none.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

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

// For a model by preset name or Hugging Face model type that we know of and cannot compute: why. Empty for all others.
std::string why_unsupported(std::string_view model);

// The families that presets() is put together from.
std::vector<Preset> gpt_presets();    // GPT-2 and 3, MT-NLG, GPT-NeoX, Pythia, OPT
std::vector<Preset> alibi_presets();  // BLOOM, MPT
std::vector<Preset> llama_presets();  // Llama, Mistral
std::vector<Preset> qwen_presets();
std::vector<Preset> wide_presets();  // PaLM, Nemotron

}  // namespace sextant
