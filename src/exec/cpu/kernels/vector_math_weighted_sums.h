// Sums of numbers with weights, made in f64: what checks of matrix products are made of (gemm_check.cpp). Of f32 they
// are vectorised; of f64 there are few.
#pragma once

#include <cstdint>

namespace sextant::cpu {

// Σ x_i·w_i and Σ x_i²·s_i; s may be null for ones.
struct WeightedSums {
  double sum = 0, squares = 0;
};
WeightedSums weighted_sums(const float* x, const double* w, const double* s, int64_t count);
WeightedSums weighted_sums(const double* x, const double* w, const double* s, int64_t count);

// A stored matrix: lines of numbers, `stride` apart.
template <class T>
struct WeightedLines {
  const T* data;
  int64_t stride, lines;
};
// The same for each of the columns [begin, end), over all lines: into sums[column] and squares[column].
void weighted_column_sums(const WeightedLines<float>& x, int64_t begin, int64_t end, const double* w, const double* s,
                          double* sums, double* squares);
void weighted_column_sums(const WeightedLines<double>& x, int64_t begin, int64_t end, const double* w, const double* s,
                          double* sums, double* squares);

}  // namespace sextant::cpu
