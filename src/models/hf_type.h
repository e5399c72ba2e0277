// HfType: how one model type of Hugging Face writes a ModelSpec into config.json.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "models/dropout_rates.h"
#include "models/hf_reader.h"
#include "models/spec.h"

namespace sextant {

// A key of config.json that holds a field of ModelSpec under another name.
struct HfName {
  std::string_view field, key;
};

// `other` is a second name of `key` (attribute_map of transformers, or a name of older files).
struct HfAlias {
  std::string_view other, key;
};

// A dropout probability that transformers trains with.
struct HfDropout {
  std::string_view key;
  std::vector<double DropoutRates::*> sets;  // the first is what is written; none: our training does not have it
  double rate = 0;                           // where the file does not say
  std::string_view section = {};             // the object it stands in, empty for config.json itself
};
inline HfDropout attention_dropout() {
  return {"attention_dropout", {&DropoutRates::attention}};
}

// The token embedding is made with padding_idx = pad_token_id: its row gets no gradient from the input.
struct HfPadding {
  std::optional<int64_t> token;  // where the file does not say
};

// Whose class the model type has. A type of ours is read by nobody else.
enum class HfKnown : uint8_t {
  in_transformers,
  remote_code,  // one that directories on the Hub bring along
  ours,
};

// One model type of Hugging Face: how a ModelSpec stands in its config.json. What all types share (vocabulary, tied
// head, tokens, dtype) is in hf_config.cpp. Defaults and aliases are those of transformers 5.22.
struct HfType {
  std::string_view model_type;  // "llama"
  std::string_view class_name;  // "LlamaForCausalLM"
  HfKnown known = HfKnown::in_transformers;
  ModelSpec (*read)(HfReader& reader) = nullptr;
  void (*write)(const ModelSpec& spec, nlohmann::json& out) = nullptr;
  std::vector<HfName> names;  // for messages
  std::vector<HfAlias> aliases = {};
  std::vector<HfDropout> dropouts = {};
  std::optional<HfPadding> padding = {};  // none: the embedding has no padding row
  bool mxfp4_experts = false;             // whether directories may hold experts in mxfp4
};

const HfType* find_hf_type(std::string_view model_type);  // null for an unknown one
const HfType& hf_type_of(const ModelSpec& spec);          // the type that it is written as

}  // namespace sextant
