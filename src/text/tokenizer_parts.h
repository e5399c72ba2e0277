// A tokenizer as data: what a tokenizer.json says, read, checked and ready to be put together. Enters: the text of the
// file, or what bpe_trainer.h made. Must hold (parse_tokenizer sees to it): ids are unique and close together, every
// merge names tokens of the vocabulary, every string is valid UTF-8.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/bpe/bpe_model.h"
#include "text/pretoken_stages.h"
#include "text/tokenizer_added.h"

namespace sextant {

// How the file writes merges: ["a", "b"], or "a b" as was the custom before tokenizers 0.20.
enum class MergeNotation { pairs, joined };

// Parts of the file that do not change what we do but belong to it, as JSON text.
struct TokenizerExtras {
  std::string pre_tokenizer = "null";
  std::string post_processor = "null";
  std::string decoder = "null";
  std::vector<std::pair<std::string, std::string>> unknown_keys;
};

struct VocabEntry {
  std::string name;  // in the byte-level alphabet
  uint32_t id = 0;
};

struct TokenizerParts {
  std::vector<VocabEntry> vocab;  // by rising id
  std::vector<BpeMerge> merges;   // in rank order
  std::vector<AddedToken> added;  // by rising id
  PretokenStages stages;
  std::vector<uint32_t> prefix, suffix;  // what the post-processor puts around one sequence
  BpeUnknown unknown;
  std::optional<std::string> unknown_name;
  bool ignore_merges = false;
  MergeNotation notation = MergeNotation::pairs;
  TokenizerExtras extras;
};

// `place` names the file in errors. UserError where the text is not a tokenizer, or one that works in ways we do not.
TokenizerParts parse_tokenizer(std::string_view text, std::string_view place);

// A file that HF `tokenizers` reads, and parse_tokenizer too.
std::string write_tokenizer(const TokenizerParts& parts);

// `text`, which is valid UTF-8, as a JSON string.
std::string json_quoted(std::string_view text);

}  // namespace sextant
