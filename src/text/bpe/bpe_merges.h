// Which pairs of tokens merge, in what order, into what. Asked several times for every byte of an unseen piece, and
// most often the answer is "not at all": a filter that fits a core's own cache says so before the larger table is
// touched.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "text/bpe/bpe_pairs.h"

namespace sextant {

struct BpeMerge {
  TokenPair pair;
  uint32_t merged;
};

class MergeTable {
 public:
  // A merge as one number, rank above and merged id below, so that the smaller is the one to do first.
  using Merge = uint64_t;
  static constexpr Merge kNone = ~Merge{0};
  static uint32_t merged_id(Merge merge) { return static_cast<uint32_t>(merge); }
  static uint32_t rank_of(Merge merge) { return static_cast<uint32_t>(merge >> 32); }

  // In rank order; of equal pairs the last counts. `ranks`, where there are any, take the place of places.
  explicit MergeTable(std::span<const BpeMerge> merges, std::span<const uint32_t> ranks = {}) : table_(merges.size()) {
    while (filter_bits() < kBitsPerMerge * merges.size()) --filter_shift_;
    filter_.resize(filter_bits() / 64);
    for (size_t rank = 0; rank < merges.size(); ++rank) {
      size_t bit = filter_bit(merges[rank].pair);
      filter_[bit / 64] |= uint64_t{1} << (bit % 64);
      table_[merges[rank].pair] = Merge{ranks.empty() ? rank : ranks[rank]} << 32 | merges[rank].merged;
    }
  }

  Merge find(TokenPair pair) const {
    size_t bit = filter_bit(pair);
    if ((filter_[bit / 64] >> (bit % 64) & 1) == 0) return kNone;
    const Merge* merge = table_.find(pair);
    return merge ? *merge : kNone;
  }

 private:
  static constexpr size_t kBitsPerMerge = 8;

  size_t filter_bits() const { return size_t{1} << (64 - filter_shift_); }
  size_t filter_bit(TokenPair pair) const {
    return (pair.left * 0x9E3779B97F4A7C15 + pair.right * 0xC2B2AE3D27D4EB4F) >> filter_shift_;
  }

  PairMap<Merge> table_;
  std::vector<uint64_t> filter_;
  int filter_shift_ = 64 - 6;
};

}  // namespace sextant
