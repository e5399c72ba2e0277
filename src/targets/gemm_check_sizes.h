// The scratch of a check of one product c = a·b of m×k by k×n (exec/gemm_fault.h): a sign for every column, two numbers
// for every row of b, four for every row of c, all doubles.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/units.h"
#include "targets/kernel_needs.h"

namespace sextant {

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

// Of y = x·wᵀ and of dx = dy·w.
inline GemmCheckSizes check_sizes_of_linear(const KernelQuery& query) {
  return {query.in[0].shape.rows(), query.out[0].shape.last(), query.in[0].shape.last()};
}

// Of dw = dyᵀ·x.
inline GemmCheckSizes check_sizes_of_weight_gradient(const KernelQuery& query) {
  return {query.in[0].shape.last(), query.in[1].shape.last(), query.in[0].shape.rows()};
}

// The largest of the three products of head and loss.
inline int64_t check_bytes_of_head_loss(int64_t chunk, int64_t vocabulary, int64_t hidden) {
  return std::max({GemmCheckSizes(chunk, vocabulary, hidden).bytes(), GemmCheckSizes(chunk, hidden, vocabulary).bytes(),
                   GemmCheckSizes(vocabulary, hidden, chunk).bytes()});
}

}  // namespace sextant
