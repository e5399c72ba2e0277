// Sums of numbers with weights, made in f64: what checks of matrix products are made of (gemm_check.cpp). Of f32 they
// are vectorised; of f64 there are few.
#pragma once

#include <cstdint>

namespace sextant::cpu {

struct SumWeights {
  const double* of_values;
  const double* of_squares = nullptr;  // null: ones
};

// Σ x_i·w_i and Σ x_i²·s_i.
struct WeightedSums {
  double sum = 0, squares = 0;
};
WeightedSums weighted_sums(const float* x, SumWeights weights, int64_t count);
WeightedSums weighted_sums(const double* x, SumWeights weights, int64_t count);

// A stored matrix: lines of numbers, `stride` apart.
template <class T>
struct WeightedLines {
  const T* data;
  int64_t stride, lines;
};
// Where sums of lines or columns are written, by the number of each.
struct SumArrays {
  double* sums;
  double* squares;
};
// The same for each of the columns [begin, end), over all lines.
void weighted_column_sums(const WeightedLines<float>& x, int64_t begin, int64_t end, SumWeights weights, SumArrays out);
void weighted_column_sums(const WeightedLines<double>& x, int64_t begin, int64_t end, SumWeights weights,
                          SumArrays out);

}  // namespace sextant::cpu
