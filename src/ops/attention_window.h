// How much of attention's square of queries and keys is seen, with a window or without.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ir/attrs.h"

namespace sextant {

// How many keys a query sees at most, its own among them; 0 = all before it.
inline int64_t window_of(const Attrs& attrs) {
  return attrs.integer_or("window", 0);
}

// The pairs that `queries` neighbouring queries and `keys` neighbouring keys make, where query 0 stands `distance`
// positions after key 0: those whose key is no later than the query, and inside its window.
inline double seen_pairs(int64_t queries, int64_t keys, int64_t distance, int64_t window) {
  double pairs = 0;
  for (int64_t i = 0; i < queries; ++i) {
    int64_t end = distance + i + 1, first = std::max<int64_t>(0, end - window);
    pairs += static_cast<double>(std::max<int64_t>(0, std::min(keys, end) - first));
  }
  return pairs;
}

// Of a sequence's square.
inline double share_seen(double length, int64_t window) {
  auto width = static_cast<double>(window);
  if (window == 0 || width >= length) return (length + 1) / (2 * length);
  return (length * width - width * (width - 1) / 2) / (length * length);
}

}  // namespace sextant
