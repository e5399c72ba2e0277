// The chunks of tokens in which the head's logits and loss are computed on a GPU.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/dtype.h"
#include "base/shape.h"
#include "base/units.h"

namespace sextant::cuda {

// The logits of this many bytes live at once, and of twice the bytes of the weights' gradient, if that is more: the
// gradient crosses memory once per chunk, which then stays cheap. Neither grows with tokens × vocabulary.
constexpr int64_t kLogitBytes = int64_t{1} << 30;
constexpr int64_t kLogitRowMultiple = 256;
constexpr int64_t kLogitStrideMultiple = 64;  // rows of logits begin where GEMMs can read them fast

struct HeadLossSizes {
  int64_t rows, hidden, vocabulary;  // of this rank, padding included
  int64_t stride;                    // of a row of logits
  int64_t chunk;                     // rows whose logits live at once
  DType dtype;

  HeadLossSizes(DType x_dtype, const LocalShape& x, const LocalShape& w)
      : rows(x.rows()), hidden(x.last()), vocabulary(w[0]), dtype(x_dtype) {
    stride = round_up(vocabulary, kLogitStrideMultiple);
    int64_t most = std::max(kLogitBytes, 2 * vocabulary * hidden * size_of(wide_of(dtype)));
    int64_t fit = std::max(kLogitRowMultiple, most / (stride * size_of(dtype)) / kLogitRowMultiple * kLogitRowMultiple);
    int64_t chunks = ceil_div(rows, fit);
    // Chunks of one size, as nearly as can be.
    chunk = std::min(rows, round_up(ceil_div(rows, chunks), kLogitRowMultiple));
  }
  int64_t loss_bytes() const { return round_up(rows * int64_t{sizeof(float)}, 256); }
  int64_t logit_bytes() const { return round_up(chunk * stride * size_of(dtype), 256); }
};

}  // namespace sextant::cuda
