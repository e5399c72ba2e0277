// The symbols with which merging begins: one for each byte (byte-level vocabularies) or for each character, with what
// happens to those that the vocabulary does not have.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sextant {

// Handling of text that no token represents: dropped when `id` is empty, as HF does, else replaced by `id`.
struct BpeUnknown {
  std::optional<uint32_t> id;
  bool fused = false;  // neighbours become one
};

enum class BpeUnit { byte, character };

using BpeTokens = std::vector<std::pair<std::string, uint32_t>>;  // text and id

// Of "<0x0A>", as vocabularies with byte_fallback name bytes.
std::optional<uint8_t> byte_of_fallback_name(std::string_view name);

class BpeSymbols {
 public:
  static constexpr uint32_t kNoToken = ~uint32_t{0};
  enum class Fallback { none, bytes };  // what stands for an unknown character: the tokens of its bytes

  BpeSymbols(const BpeTokens& tokens, BpeUnit unit, BpeUnknown unknown, Fallback fallback);

  // Appends the symbols of `piece`, which is valid UTF-8 where the unit is the character.
  void append(std::string_view piece, std::vector<uint32_t>& ids) const {
    return unit_ == BpeUnit::byte ? append_bytes(piece, ids) : append_characters(piece, ids);
  }

  uint32_t of_character(char32_t code) const {
    size_t block = code >> kBlockBits;
    return block < blocks_.size() ? characters_[blocks_[block] + (code & (kBlock - 1))] : kNoToken;
  }

  // Whether the symbols of a text are those of its parts before and after a cut between these characters. An unknown
  // one may be fused with the one before it, and the neighbours of one that is dropped become neighbours.
  bool may_cut_between(char32_t left, char32_t right) const {
    if (all_bytes_) return true;
    return of_character(right) != kNoToken && (unknown_.id || of_character(left) != kNoToken);
  }

 private:
  void append_bytes(std::string_view piece, std::vector<uint32_t>& ids) const;
  void append_characters(std::string_view piece, std::vector<uint32_t>& ids) const;
  bool append_fallback(std::string_view character, std::vector<uint32_t>& ids) const;
  void set_character(char32_t code, uint32_t id);

  static constexpr int kBlockBits = 8;
  static constexpr size_t kBlock = size_t{1} << kBlockBits;

  BpeUnit unit_;
  BpeUnknown unknown_;
  Fallback fallback_;
  bool all_bytes_ = false;              // the fallback has a token for every byte
  std::array<uint32_t, 256> byte_ids_;  // of bytes themselves, or of the fallback
  std::vector<uint32_t> blocks_;        // where the block of a character begins
  std::vector<uint32_t> characters_;
};

}  // namespace sextant
