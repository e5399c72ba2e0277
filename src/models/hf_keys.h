// What the configuration classes of transformers say about the keys of config.json, per model type: names that mean the
// same setting, dropout rates with their defaults, and whether the token embedding has a padding row. Read from 5.22.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace sextant {

// `other` is a second name of `key` (attribute_map, or a name of older files).
struct HfAlias {
  std::string_view model_type, other, key;
};

// A dropout probability; `section` is the object it stands in, empty for config.json itself.
struct HfDropout {
  std::string_view model_type, section, key;
  double rate = 0;  // where the file does not say
};

// The model types whose token embedding is made with padding_idx = pad_token_id: its row gets no gradient from the
// input.
struct HfPadding {
  std::string_view model_type;
  std::optional<int64_t> token;  // where the file does not say
};

std::span<const HfAlias> hf_aliases();
std::span<const HfDropout> hf_dropouts();
const HfPadding* find_hf_padding(std::string_view model_type);  // null where the embedding has none

}  // namespace sextant
