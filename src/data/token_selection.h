// Tokens of a file to draw from: ranges of it, in an order of their own, counted as if they were one sequence. Position
// p of the selection is one token of the file, found in O(log ranges); reading allocates nothing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/packing.h"

namespace sextant {

class TokenSelection {
 public:
  TokenSelection() = default;
  // Implicit: most selections are one range.
  TokenSelection(TokenRange range);  // NOLINT(google-explicit-constructor)
  TokenSelection(int64_t begin, int64_t end) : TokenSelection(TokenRange{begin, end}) {}
  // Empty ranges are left out, and a range that goes on where the one before ends is joined to it.
  explicit TokenSelection(const std::vector<TokenRange>& ranges);

  int64_t size() const { return ends_.empty() ? 0 : ends_.back(); }
  std::span<const TokenRange> ranges() const { return ranges_; }

  // Calls visit(TokenRange) with the tokens of the file at positions [first, first + count), which must lie in the
  // selection, in order.
  template <class Visit>
  void for_each_range(int64_t first, int64_t count, const Visit& visit) const {
    auto at = static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), first) - ends_.begin());
    for (; count > 0; ++at) {
      const TokenRange& range = ranges_[at];
      int64_t begin = range.end - (ends_[at] - first), length = std::min(count, range.end - begin);
      visit(TokenRange{begin, begin + length});
      first += length;
      count -= length;
    }
  }

 private:
  void add(TokenRange range);

  std::vector<TokenRange> ranges_;
  std::vector<int64_t> ends_;  // of each range, as a position of the selection
};

}  // namespace sextant
