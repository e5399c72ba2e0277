// The scratch of a check of a product on a GPU: that of every check (targets/gemm_check_sizes.h), and behind it the
// rows that look wrong.
#pragma once

#include "targets/gemm_check_sizes.h"

namespace sextant::cuda {

constexpr int kMostSuspects = 4;  // rows that are computed again, of one product

// Their number, which they are, and whether one was reported; before them what the bias is to every row.
struct SuspectRows {
  double bias, bias_squares;
  int32_t count;
  int32_t rows[kMostSuspects];
  int32_t reported;
};

constexpr int64_t device_check_bytes(int64_t sums) {
  return sums + int64_t{sizeof(SuspectRows)};
}

}  // namespace sextant::cuda
