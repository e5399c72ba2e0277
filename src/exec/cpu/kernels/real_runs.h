// The elements of a shard that are real: where a dim does not divide among ranks, padding follows them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "exec/tensor.h"

namespace sextant::cpu {

inline bool has_padding(const Tensor& x) {
  for (int dim = 0; dim < x.shape.rank(); ++dim)
    if (x.real_extent(dim) != x.shape[dim]) return true;
  return false;
}

// Calls body(begin, end) for each run of neighbouring real elements among [begin, end).
template <class Body>
void for_real_runs(const Tensor& x, int64_t begin, int64_t end, const Body& body) {
  if (!has_padding(x)) return body(begin, end);
  int last = x.shape.rank() - 1;
  int64_t width = x.shape[last], real = x.real_extent(last);
  for (int64_t row = begin / width; row * width < end; ++row) {
    bool padded = false;
    int64_t rest = row;
    for (int dim = last - 1; dim >= 0; rest /= x.shape[dim--])
      padded = padded || rest % x.shape[dim] >= x.real_extent(dim);
    int64_t from = std::max(begin, row * width), to = std::min(end, row * width + real);
    if (!padded && from < to) body(from, to);
  }
}

}  // namespace sextant::cpu
