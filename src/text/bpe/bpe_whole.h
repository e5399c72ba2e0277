// Which pieces are tokens as they stand. Asked for every unseen piece where a tokenizer ignores merges for such pieces,
// so a piece that is none must be known by one look.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sextant {

class WholeTokens {
 public:
  using Token = std::pair<std::string, uint32_t>;  // bytes and id

  WholeTokens() = default;
  explicit WholeTokens(std::vector<Token> tokens) : tokens_(std::move(tokens)) {
    size_t capacity = 16;
    while (capacity < 2 * tokens_.size()) capacity *= 2;
    slots_.resize(capacity);
    for (uint32_t i = 0; i < tokens_.size(); ++i) {
      uint64_t hash = hash_of(tokens_[i].first);
      size_t at = hash & (capacity - 1);
      while (slots_[at].token != kEmpty) at = (at + 1) & (capacity - 1);
      slots_[at] = {static_cast<uint32_t>(hash >> 32), i};
    }
  }

  std::optional<uint32_t> find(std::string_view piece) const {
    if (slots_.empty()) return std::nullopt;
    uint64_t hash = hash_of(piece);
    for (size_t at = hash & (slots_.size() - 1); slots_[at].token != kEmpty; at = (at + 1) & (slots_.size() - 1)) {
      if (slots_[at].tag != static_cast<uint32_t>(hash >> 32)) continue;
      const Token& token = tokens_[slots_[at].token];
      if (token.first == piece) return token.second;
    }
    return std::nullopt;
  }

 private:
  static constexpr uint32_t kEmpty = ~uint32_t{0};

  struct Slot {
    uint32_t tag = 0;         // the upper half of the hash, to pass over others without reading their bytes
    uint32_t token = kEmpty;  // in tokens_
  };

  static uint64_t hash_of(std::string_view text) { return std::hash<std::string_view>{}(text); }

  std::vector<Token> tokens_;
  std::vector<Slot> slots_;  // open-addressed, at most half full
};

}  // namespace sextant
