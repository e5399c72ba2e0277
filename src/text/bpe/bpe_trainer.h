// Learns a byte-level BPE tokenizer from text: the commonest pair of neighbours becomes a token, again and again. Given
// the same documents, vocabulary size and pattern the merges are those of HF's `BpeTrainer` with the byte-level
// alphabet: of equally common pairs the one with the lower ids comes first. The order of the documents does not matter.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/split/split.h"
#include "text/tokenizer.h"

namespace sextant {

struct BpeTrainingPlan {
  uint32_t vocab_size = 0;                  // special tokens, then the 256 bytes, then merged tokens
  std::vector<std::string> special_tokens;  // in the order of their ids
  std::string pattern{kGpt2Pattern};
  uint64_t min_count = 0;  // rarer pairs are not merged, even if the vocabulary stays smaller
};

class BpeTrainer {
 public:
  explicit BpeTrainer(BpeTrainingPlan plan);  // UserError where the plan cannot be

  // Counts the pieces of one document. Broken UTF-8 is read as Tokenizer::encode reads it.
  void feed(std::string_view document);
  Tokenizer train() const;

 private:
  struct TextHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };

  BpeTrainingPlan plan_;
  std::unique_ptr<Splitter> splitter_;
  std::unordered_map<std::string, uint64_t, TextHash, std::equal_to<>> pieces_;
};

Tokenizer train_bpe(std::span<const std::string_view> documents, BpeTrainingPlan plan);

}  // namespace sextant
