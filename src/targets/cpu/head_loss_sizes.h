// The chunks of tokens in which the head's logits and loss are computed on a CPU.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/dtype.h"
#include "base/shape.h"
#include "targets/cpu/gemm_sizes.h"

namespace sextant::cpu {

// The logits of this many bytes live at once.
constexpr int64_t kLogitBytes = int64_t{16} << 20;

struct HeadLossSizes {
  int64_t rows, hidden, vocabulary;  // the part of the vocabulary that this rank has
  int64_t chunk;                     // rows whose logits live at once

  HeadLossSizes(const LocalShape& x, const LocalShape& w) : rows(x.rows()), hidden(x.last()), vocabulary(w[0]) {
    chunk = std::min(rows, std::clamp<int64_t>(kLogitBytes / 4 / vocabulary, 64, 1024));
  }
  int64_t loss_bytes() const { return round_up(rows * int64_t{sizeof(double)}, 64); }
  int64_t logit_bytes(DType dtype) const { return round_up(chunk * vocabulary * size_of(dtype), 64); }
  int64_t gemm_bytes(int threads) const {
    return std::max({multiply_workspace(vocabulary, hidden, threads), multiply_workspace(hidden, vocabulary, threads),
                     multiply_workspace(hidden, chunk, threads)});
  }
};

}  // namespace sextant::cpu
