// HfFormat: how one model type of Hugging Face writes a ModelSpec into config.json. What all types share (vocabulary,
// tied head, tokens, dtype) is in hf_config.cpp.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string_view>

#include "models/hf_reader.h"
#include "models/spec.h"

namespace sextant {

struct HfFormat {
  struct Name {
    std::string_view field, key;  // of ModelSpec, and of config.json
  };

  std::string_view model_type;
  std::string_view class_name;  // "LlamaForCausalLM"
  ModelSpec (*read)(HfReader& reader);
  void (*write)(const ModelSpec& spec, nlohmann::json& out);
  std::span<const Name> names;  // where they differ from field to key, for messages
};

std::span<const HfFormat> llama_formats();  // llama, mistral, qwen2, qwen3, nemotron, palm
std::span<const HfFormat> gpt_formats();    // gpt2, gpt_neox, opt, bloom, mpt

}  // namespace sextant
