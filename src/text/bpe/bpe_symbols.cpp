#include "text/bpe/bpe_symbols.h"

#include <algorithm>

#include "base/error.h"
#include "text/unicode/unicode_utf8.h"

namespace sextant {

std::optional<uint8_t> byte_of_fallback_name(std::string_view name) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  if (name.size() != 6 || !name.starts_with("<0x") || name[5] != '>') return std::nullopt;
  size_t high = kHex.find(name[3]), low = kHex.find(name[4]);
  if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
  return static_cast<uint8_t>(high * 16 + low);
}

BpeSymbols::BpeSymbols(const BpeTokens& tokens, BpeUnit unit, BpeUnknown unknown, Fallback fallback)
    : unit_(unit), unknown_(unknown), fallback_(fallback), characters_(kBlock, kNoToken) {
  byte_ids_.fill(kNoToken);
  for (const auto& [text, id] : tokens) {
    if (text.empty()) continue;
    if (unit == BpeUnit::byte) {
      if (text.size() == 1) byte_ids_[static_cast<uint8_t>(text[0])] = id;
      continue;
    }
    if (Utf8Char c = decode_valid_utf8(text.data()); c.size == text.size()) set_character(c.code, id);
    if (auto byte = byte_of_fallback_name(text); byte && fallback == Fallback::bytes) byte_ids_[*byte] = id;
  }
  all_bytes_ =
      fallback == Fallback::bytes && std::find(byte_ids_.begin(), byte_ids_.end(), kNoToken) == byte_ids_.end();
}

// Block 0 of characters_ has no token and serves all blocks without any.
void BpeSymbols::set_character(char32_t code, uint32_t id) {
  size_t block = code >> kBlockBits;
  if (blocks_.size() <= block) blocks_.resize(block + 1, 0);
  if (blocks_[block] == 0) {
    blocks_[block] = static_cast<uint32_t>(characters_.size());
    characters_.resize(characters_.size() + kBlock, kNoToken);
  }
  characters_[blocks_[block] + (code & (kBlock - 1))] = id;
}

void BpeSymbols::append_bytes(std::string_view piece, std::vector<uint32_t>& ids) const {
  bool after_unknown = false;
  for (char byte : piece) {
    uint32_t id = byte_ids_[static_cast<uint8_t>(byte)];
    bool known = id != kNoToken;
    if (known)
      ids.push_back(id);
    else if (unknown_.id && !(unknown_.fused && after_unknown))
      ids.push_back(*unknown_.id);
    after_unknown = !known;
  }
}

// An unknown is held back until it is known whether the next belongs to it. As in HF, bytes of the fallback that come
// in between go before it.
void BpeSymbols::append_characters(std::string_view piece, std::vector<uint32_t>& ids) const {
  bool held_back = false;
  for (size_t at = 0; at < piece.size();) {
    Utf8Char c = decode_valid_utf8(piece.data() + at);
    uint32_t id = of_character(c.code);
    if (id != kNoToken) {
      if (held_back) ids.push_back(*unknown_.id);
      held_back = false;
      ids.push_back(id);
    } else if (!append_fallback(piece.substr(at, c.size), ids) && unknown_.id) {
      if (held_back && !unknown_.fused) ids.push_back(*unknown_.id);
      held_back = true;
    }
    at += c.size;
  }
  if (held_back) ids.push_back(*unknown_.id);
}

bool BpeSymbols::append_fallback(std::string_view character, std::vector<uint32_t>& ids) const {
  if (fallback_ == Fallback::none) return false;
  for (char byte : character)
    if (byte_ids_[static_cast<uint8_t>(byte)] == kNoToken) return false;
  for (char byte : character) ids.push_back(byte_ids_[static_cast<uint8_t>(byte)]);
  return true;
}

}  // namespace sextant
