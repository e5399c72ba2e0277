// The files in which a model directory keeps its tokenizer.
#pragma once

#include <array>
#include <filesystem>
#include <optional>

#include "text/tokenizer_parts.h"

namespace sextant {

inline constexpr const char* kTokenizerFile = "tokenizer.json";
inline constexpr const char* kSentencePieceFile = "tokenizer.model";
inline constexpr const char* kTokenizerConfigFile = "tokenizer_config.json";
inline constexpr const char* kVocabFile = "vocab.json";  // with merges.txt beside it

// The files that a directory's tokenizer is read from, the first choice first.
inline constexpr std::array kTokenizerSources{kTokenizerFile, kSentencePieceFile, kVocabFile};

// The first of them that is there, vocab.json with merges.txt; nothing where there is none.
std::optional<std::filesystem::path> find_tokenizer(const std::filesystem::path& directory);

// All that decides what `read_tokenizer_file` makes of it, as one text: equal texts are equal tokenizers.
std::string tokenizer_source(const std::filesystem::path& path);

// By the file's name: *.model is sentencepiece's, vocab.json the older pair of files, anything else a tokenizer.json.
TokenizerParts read_tokenizer_file(const std::filesystem::path& path);

// Contents of vocab.json and merges.txt, with the tokenizer_config.json (may be empty) of the same directory.
struct VocabAndMerges {
  std::string vocab, merges, config;
  std::string added;  // added_tokens.json, may be empty
};
TokenizerParts parse_vocab_and_merges(const VocabAndMerges& files, std::string_view place);

}  // namespace sextant
