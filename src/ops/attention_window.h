// How much of attention's square of queries and keys is seen: all up to a query's own, or of these a window or a chunk.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "ir/attrs.h"

namespace sextant {

// Which keys up to its own position a query sees.
struct KeyRange {
  int64_t window = 0;  // so many at most, its own among them; 0 = all
  int64_t chunk = 0;   // those of its own chunk, the sequence being cut into chunks of so many positions; 0 = all

  bool whole() const { return window == 0 && chunk == 0; }
  // The first key that a query at that position sees.
  int64_t first(int64_t position) const {
    int64_t key = window > 0 ? std::max<int64_t>(0, position + 1 - window) : 0;
    return chunk > 0 ? std::max(key, position / chunk * chunk) : key;
  }
};

inline KeyRange key_range_of(const Attrs& attrs) {
  return {attrs.integer_or("window", 0), attrs.integer_or("chunk", 0)};
}

// The pairs that `queries` neighbouring queries and `keys` neighbouring keys make, where query 0 and key 0 stand at
// these positions: those whose key is no later than the query, and in its range.
inline double seen_pairs(int64_t queries, int64_t keys, int64_t query_0, int64_t key_0, KeyRange range) {
  double pairs = 0;
  for (int64_t position = query_0; position < query_0 + queries; ++position) {
    int64_t end = std::min(key_0 + keys, position + 1), first = std::max(key_0, range.first(position));
    pairs += static_cast<double>(std::max<int64_t>(0, end - first));
  }
  return pairs;
}

// Of a sequence's square.
inline double share_seen(double length, KeyRange range) {
  auto square = [&](double pairs) { return pairs / (length * length); };
  if (auto chunk = static_cast<double>(range.chunk); range.chunk > 0 && chunk < length) {
    double whole = std::floor(length / chunk), rest = length - whole * chunk;
    return square(whole * chunk * (chunk + 1) / 2 + rest * (rest + 1) / 2);
  }
  if (auto width = static_cast<double>(range.window); range.window > 0 && width < length)
    return square(length * width - width * (width - 1) / 2);
  return (length + 1) / (2 * length);
}

}  // namespace sextant
