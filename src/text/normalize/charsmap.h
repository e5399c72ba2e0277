// The rules by which sentencepiece normalizes text, compiled into one block of bytes: the size of a double-array trie
// (darts-clone), the trie, and the texts that it leads to, each with a zero behind it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/normalize/normalizer.h"

namespace sextant {

class Charsmap {
 public:
  // UserError at `place` where the bytes are not such a block. Nothing of a hostile one is read out of bounds.
  Charsmap(std::string_view bytes, std::string_view place);

  struct Rule {
    size_t size;  // bytes of the text that it replaces
    std::string_view content;
  };

  // Of the rules for what `text` begins with, the shortest and the longest; nothing where there is none.
  std::optional<Rule> shortest(std::string_view text) const { return rule_of(text, Wanted::shortest); }
  std::optional<Rule> longest(std::string_view text) const { return rule_of(text, Wanted::longest); }

  // Whether a rule may begin with this byte.
  bool may_begin(char byte) const { return begins_[static_cast<uint8_t>(byte)]; }

 private:
  enum class Wanted { shortest, longest };
  std::optional<Rule> rule_of(std::string_view text, Wanted wanted) const;
  std::string_view content_at(uint32_t offset) const;

  std::vector<uint32_t> units_;
  std::string texts_;
  std::vector<bool> begins_;
};

std::shared_ptr<const Charsmap> read_charsmap_base64(std::string_view text, std::string_view place);

// HF's "Precompiled": grapheme by grapheme, where it is short, else character by character.
NormalizerPtr precompiled_normalizer(std::shared_ptr<const Charsmap> map);

}  // namespace sextant
