// The scratch of a check of one product c = a·b of m×k by k×n (exec/cpu/kernels/gemm_check.h): a sign for every column,
// two numbers for every row of b, four for every row of c, all doubles.
#pragma once

#include <cstdint>

#include "base/units.h"

namespace sextant::cpu {

struct GemmCheckSizes {
  GemmCheckSizes(int64_t m, int64_t n, int64_t k)
      : b_sums(doubles(n)),
        b_squares(b_sums + doubles(k)),
        expected(b_squares + doubles(k)),
        squares(expected + doubles(m)),
        before(squares + doubles(m)),
        before_squares(before + doubles(m)),
        end(before_squares + doubles(m)) {}
  int64_t bytes() const { return end; }

  // Where each begins; the signs come first.
  int64_t b_sums, b_squares, expected, squares, before, before_squares, end;

 private:
  static int64_t doubles(int64_t count) { return round_up(count * int64_t{sizeof(double)}, 64); }
};

}  // namespace sextant::cpu
