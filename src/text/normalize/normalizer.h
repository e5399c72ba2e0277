// Normalizers change text before it is split, as those of tokenizer.json do. Enters: valid UTF-8; leaves: the same.
// A normalizer never changes after it is made, so threads may share it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace sextant {

class PcrePattern;

struct NormalText {
  std::string text;
  bool from_start = true;   // its first character comes from the very begin of what was given to the tokenizer
  size_t first_became = 1;  // characters at the front that the first one was taken apart into

  void dropped_from_front(size_t characters) {
    if (characters >= first_became)
      from_start = false;
    else
      first_became -= characters;
  }
};

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual void apply(NormalText& text) const = 0;
};

using NormalizerPtr = std::shared_ptr<const Normalizer>;

enum class StripSide { left, right, both };

// Normalizers of one purpose each. What they are called in tokenizer.json stands behind them.
NormalizerPtr sequence_normalizer(std::vector<NormalizerPtr> steps);                        // Sequence
NormalizerPtr prepend_normalizer(std::string prefix);                                       // Prepend
NormalizerPtr strip_normalizer(StripSide side);                                             // Strip
NormalizerPtr literal_normalizer(std::string pattern, std::string content);                 // Replace, of a String
NormalizerPtr regex_normalizer(std::unique_ptr<PcrePattern> pattern, std::string content);  // Replace, of a Regex

enum class CharChange { lowercase, nmt, strip_accents, bert_clean, bert_chinese, bert_accents };
NormalizerPtr character_normalizer(CharChange change);

enum class NormalForm { nfc, nfd, nfkc, nfkd };
NormalizerPtr form_normalizer(NormalForm form);

// `text` normalized; by null not at all.
std::string normalized(std::string_view text, const Normalizer* normalizer);

}  // namespace sextant
