// Pieces of a vocabulary as a double-array trie over their bytes: all that begin at a place of a text are found in one
// walk.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sextant {

class PieceTrie {
 public:
  static constexpr uint32_t kNone = ~uint32_t{0};

  PieceTrie() : units_(512) {}  // no pieces
  // Texts and their values; none empty. Of equal texts the last counts.
  explicit PieceTrie(std::vector<std::pair<std::string, uint32_t>> pieces);

  // Calls found(size, value) for every piece that `text` begins with, the shortest first.
  template <class Found>
  void walk(std::string_view text, Found&& found) const {
    uint32_t node = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      uint32_t next = units_[node].base + static_cast<uint8_t>(text[i]);
      if (units_[next].parent != node) return;
      node = next;
      if (units_[node].value != kNone) found(i + 1, units_[node].value);
    }
  }

  // kNone where it is none of the pieces.
  uint32_t find(std::string_view text) const;

 private:
  struct Unit {
    uint32_t base = 0;        // where its children begin
    uint32_t parent = kNone;  // kNone: free
    uint32_t value = kNone;
  };
  class Builder;

  std::vector<Unit> units_;
};

}  // namespace sextant
