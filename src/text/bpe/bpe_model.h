// Byte-pair encoding of one piece: bytes become symbols, then the pair of neighbours with the lowest rank is merged,
// the leftmost first, until no pair has a rank. Results equal HF's `BPE` model for byte-level vocabularies.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/bpe/bpe_merges.h"
#include "text/bpe/bpe_whole.h"

namespace sextant {

// Bytes that no token stands for: dropped when `id` is empty, as HF does, else replaced by it.
struct BpeUnknown {
  std::optional<uint32_t> id;
  bool fused = false;  // neighbours become one
};

struct BpeModelParts {
  std::vector<std::pair<std::string, uint32_t>> tokens;  // bytes and id, of those that text can reach
  std::vector<BpeMerge> merges;                          // in rank order; of equal pairs the last counts
  BpeUnknown unknown;
  bool whole_pieces_first = false;  // HF's ignore_merges: a piece that is a token is that token
};

class BpeModel {
 public:
  explicit BpeModel(const BpeModelParts& parts);

  // What merging works on, kept by the caller from piece to piece.
  struct Scratch {
    struct Symbol {
      uint32_t id;
      uint32_t previous, next;  // positions
    };
    struct Candidate {
      MergeTable::Merge merge;
      uint32_t at;
    };
    std::vector<uint32_t> ids;
    std::vector<Symbol> symbols;
    std::vector<Candidate> heap;
  };

  // Appends the ids of one piece. UserError for a piece of 4 GiB or more.
  void encode(std::string_view piece, std::vector<uint32_t>& out, Scratch& scratch) const;

 private:
  void merge_bytes(std::string_view piece, std::vector<uint32_t>& out, Scratch& scratch) const;
  void bytes_to_ids(std::string_view piece, std::vector<uint32_t>& ids) const;
  void merge_short(std::vector<uint32_t>& ids) const;
  void merge_long(Scratch& scratch) const;

  static constexpr uint32_t kNoToken = ~uint32_t{0};
  std::array<uint32_t, 256> byte_ids_;
  MergeTable merges_;
  BpeUnknown unknown_;
  WholeTokens whole_;  // empty unless whole_pieces_first
};

}  // namespace sextant
