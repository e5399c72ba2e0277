// Spans: which elements of a dim a rank holds, as a kernel parameter. The same answers as Tensor::global_index and
// local_index give on the host.
#pragma once

#include <cstdint>
#include <limits>

#include "base/error.h"
#include "exec/tensor.h"

namespace sextant::cuda {

struct Spans {
  static constexpr int kMost = 8;
  int count = 0;
  Span spans[kMost];

  __device__ int64_t global_index(int64_t i) const {
    for (int k = 0; k < count; ++k)
      if (i >= spans[k].local && i < spans[k].local + spans[k].count)
        return spans[k].global + (i - spans[k].local) * spans[k].stride;
    return -1;
  }

  __device__ int64_t local_index(int64_t global) const {
    for (int k = 0; k < count; ++k) {
      int64_t behind = global - spans[k].global, i = behind;
      if (spans[k].stride > 1) {  // divisions take long on a device
        if (behind < 0 || behind % spans[k].stride != 0) continue;
        i = behind / spans[k].stride;
      }
      if (i >= 0 && i < spans[k].count) return spans[k].local + i;
    }
    return -1;
  }
};

inline Spans spans_of(const Tensor& tensor, int dim) {
  Spans held;
  if (!tensor.placement) {
    held.count = 1;
    held.spans[0] = {.global = 0, .local = 0, .count = tensor.shape[dim]};
    return held;
  }
  const std::vector<Span>& spans = tensor.placement->dims[static_cast<size_t>(dim)];
  BUG_IF(spans.size() > Spans::kMost, "{} pieces of a dim on one rank; kernels take {}", spans.size(), Spans::kMost);
  for (const Span& span : spans) held.spans[held.count++] = span;
  return held;
}

}  // namespace sextant::cuda
