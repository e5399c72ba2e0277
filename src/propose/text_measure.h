// How many bytes of a text one token holds: by the tokenizer that training would make of it, or by one that there is.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace sextant {

struct TextMeasureRequest {
  std::string path;                                // of text; "stories" for the built-in ones
  int64_t vocab = 0;                               // of a tokenizer that is trained here,
  std::optional<std::filesystem::path> tokenizer;  // unless one is named
  int64_t most_bytes = 4'000'000;                  // of text that are looked at: the first documents
};

// The end of each document counts as a token. UserError where the text cannot be read.
double bytes_per_token(const TextMeasureRequest& request);

}  // namespace sextant
