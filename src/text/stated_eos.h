// Which token ends a document, as the files beside a tokenizer.json say: tokenizer.json itself does not.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace sextant {

struct StatedEos {
  std::string place;         // "DIR/tokenizer_config.json eos_token"
  std::string token;         // its content; empty where ids are given
  std::vector<int64_t> ids;  // eos_token_id
};

// The eos_token of tokenizer_config.json, else of special_tokens_map.json, else the eos_token_id of config.json, else
// of generation_config.json. Empty where none of them says. UserError where one cannot be read.
std::optional<StatedEos> stated_eos(const std::filesystem::path& tokenizer_json);

// The end-of-document token that one such file states; messages call the file `place`.
std::optional<StatedEos> stated_eos_in(std::string_view text, std::string_view place);

// Makes it the tokenizer's eos_id. Of several ids the first that the tokenizer has counts; UserError where it does not
// have the token.
void take_stated_eos(const std::optional<StatedEos>& stated, Tokenizer& tokenizer);

}  // namespace sextant
