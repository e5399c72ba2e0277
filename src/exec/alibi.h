// The slopes of ALiBi (Press et al. 2021): by how much the score of a key falls with every position that it lies before
// its query, head by head.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "exec/tensor.h"
#include "ir/attrs.h"
#include "ops/attention_widths.h"

namespace sextant {

// Of n = 2^k heads, head h has 2^(−8·(h+1)/n). Where there are more heads than n and fewer than 2n, the others have
// every second slope of a model with 2n.
inline double alibi_slope(int64_t head, int64_t heads) {
  auto n = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(heads)));
  double step = -8.0 / static_cast<double>(n);
  return head < n ? std::exp2(step * static_cast<double>(head + 1))
                  : std::exp2(step * (static_cast<double>(head - n) + 0.5));
}

// The slope of a rank's own head by the op's attrs: 0 without ALiBi. `y` are rows of attention's output, which know
// which heads of the model the rank has.
inline double alibi_slope_of(const Attrs& attrs, const Tensor& y, int64_t local_head) {
  if (attrs.integer_or("alibi", 0) == 0) return 0;
  int64_t dim = value_dim_of(attrs);
  return alibi_slope(y.global_index(2, local_head * dim) / dim, attrs.integer("heads"));
}

}  // namespace sextant
