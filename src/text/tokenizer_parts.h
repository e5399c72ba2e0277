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
#include "text/normalize/normalizer.h"
#include "text/pretoken_stages.h"
#include "text/tokenizer_added.h"
#include "text/unigram/unigram_model.h"

namespace sextant {

// How the file writes merges: ["a", "b"], or "a b" as was the custom before tokenizers 0.20.
enum class MergeNotation { pairs, joined };

// Parts of the file that do not change what we do but belong to it, as JSON text.
struct TokenizerExtras {
  std::string normalizer = "null";
  std::string pre_tokenizer = "null";
  std::string post_processor = "null";
  std::string decoder = "null";
  std::vector<std::pair<std::string, std::string>> unknown_keys;
};

struct VocabEntry {
  std::string name;  // in the byte-level alphabet, or as it is
  uint32_t id = 0;
  bool in_text = true;  // text may become it; control tokens and the bytes of sentencepiece are never written so
};

// Of a Unigram model, instead of merges.
struct UnigramScores {
  std::vector<double> scores;  // by place in the vocabulary
  uint32_t unknown = 0;
  ScoreSums sums = ScoreSums::doubles;
  std::optional<double> lowest = std::nullopt;  // that counts for unknown characters; none: the lowest of all
};

struct TokenizerParts {
  std::vector<VocabEntry> vocab;      // by rising id
  std::vector<BpeMerge> merges;       // in rank order
  std::vector<uint32_t> merge_ranks;  // where several have the same
  std::optional<UnigramScores> unigram;
  std::vector<AddedToken> added;  // by rising id
  NormalizerPtr normalizer;       // null: none
  PretokenStages stages;
  BpeUnit unit = BpeUnit::byte;  // of what the stages leave
  bool byte_names = false;       // the vocabulary's names are in the byte-level alphabet, whatever the unit
  bool byte_fallback = false;
  bool spaces_as_metaspace = false;      // the decoder turns U+2581 into spaces
  std::vector<uint32_t> prefix, suffix;  // what the post-processor puts around one sequence
  BpeUnknown unknown;
  std::optional<std::string> unknown_name;
  bool ignore_merges = false;
  MergeNotation notation = MergeNotation::pairs;
  TokenizerExtras extras;

  // Of a tokenizer.model: the file itself, and which tokens it calls special, begin and end.
  std::string sentencepiece;
  std::vector<uint32_t> specials;
  std::optional<uint32_t> stated_bos, stated_eos;
};

// `place` names the file in errors. UserError where the text is not a tokenizer, or one that works in ways we do not.
TokenizerParts parse_tokenizer(std::string_view text, std::string_view place);

// Of a tokenizer.model of sentencepiece; ids are those of its library.
TokenizerParts parse_sentencepiece(std::string_view bytes, std::string_view place);

// A file that HF `tokenizers` reads, and parse_tokenizer too.
std::string write_tokenizer(const TokenizerParts& parts);

// `text`, which is valid UTF-8, as a JSON string.
std::string json_quoted(std::string_view text);

}  // namespace sextant
