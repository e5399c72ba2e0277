#include "exec/cpu/kernels/vector_math_weighted_sums.h"

#include <algorithm>

// As vector_math.cpp: compiled once per instruction set.
#define HWY_BROKEN_EMU128 0
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "exec/cpu/kernels/vector_math_weighted_sums.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Doubles = hn::ScalableTag<double>;
using Wide = hn::Vec<Doubles>;

constexpr Doubles kDoubles;
constexpr hn::Rebind<float, Doubles> kFloats;
constexpr int64_t kAtOnce = hn::MaxLanes(Doubles());

HWY_INLINE Wide widened(const float* x) {
  return hn::PromoteTo(kDoubles, hn::LoadU(kFloats, x));
}

// Two sums that wait for nothing but their own last term.
struct PairOfSums {
  Wide sum, squares;

  HWY_INLINE PairOfSums() : sum(hn::Zero(kDoubles)), squares(hn::Zero(kDoubles)) {}
  HWY_INLINE void add(Wide x, Wide w, Wide s) {
    sum = hn::MulAdd(x, w, sum);
    squares = hn::MulAdd(hn::Mul(x, x), s, squares);
  }
};

WeightedSums weighted(const float* x, SumWeights weights, int64_t count) {
  const double *w = weights.of_values, *s = weights.of_squares;
  const Wide ones = hn::Set(kDoubles, 1.0);
  PairOfSums even, odd;
  int64_t i = 0;
  auto add = [&](PairOfSums& sums, int64_t at) HWY_ATTR {
    sums.add(widened(x + at), hn::LoadU(kDoubles, w + at), s ? hn::LoadU(kDoubles, s + at) : ones);
  };
  for (; i + 2 * kAtOnce <= count; i += 2 * kAtOnce) {
    add(even, i);
    add(odd, i + kAtOnce);
  }
  WeightedSums all{hn::GetLane(hn::SumOfLanes(kDoubles, hn::Add(even.sum, odd.sum))),
                   hn::GetLane(hn::SumOfLanes(kDoubles, hn::Add(even.squares, odd.squares)))};
  for (; i < count; ++i) {
    double v = x[i];
    all.sum += v * w[i];
    all.squares += v * v * (s ? s[i] : 1.0);
  }
  return all;
}

// Columns [at, at + kAtOnce·kVectors), whose sums stay in registers.
template <int kVectors>
HWY_INLINE void weigh_columns(const WeightedLines<float>& x, int64_t at, SumWeights weights, SumArrays out) {
  const double *w = weights.of_values, *s = weights.of_squares;
  PairOfSums columns[kVectors];
  for (int64_t line = 0; line < x.lines; ++line) {
    const float* from = x.data + line * x.stride + at;
    const Wide weight = hn::Set(kDoubles, w[line]), scale = hn::Set(kDoubles, s ? s[line] : 1.0);
    for (int i = 0; i < kVectors; ++i) columns[i].add(widened(from + i * kAtOnce), weight, scale);
  }
  for (int i = 0; i < kVectors; ++i) {
    hn::StoreU(columns[i].sum, kDoubles, out.sums + at + i * kAtOnce);
    hn::StoreU(columns[i].squares, kDoubles, out.squares + at + i * kAtOnce);
  }
}

void weighted_columns(const WeightedLines<float>& x, int64_t begin, int64_t end, SumWeights weights, SumArrays out) {
  const double *w = weights.of_values, *s = weights.of_squares;
  int64_t i = begin;
  for (; i + 4 * kAtOnce <= end; i += 4 * kAtOnce) weigh_columns<4>(x, i, weights, out);
  for (; i + 2 * kAtOnce <= end; i += 2 * kAtOnce) weigh_columns<2>(x, i, weights, out);
  for (; i + kAtOnce <= end; i += kAtOnce) weigh_columns<1>(x, i, weights, out);
  for (; i < end; ++i) {
    double sum = 0, square = 0;
    for (int64_t line = 0; line < x.lines; ++line) {
      double v = x.data[line * x.stride + i];
      sum += v * w[line];
      square += v * v * (s ? s[line] : 1.0);
    }
    out.sums[i] = sum;
    out.squares[i] = square;
  }
}

}  // namespace sextant::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sextant::cpu {

namespace {
HWY_EXPORT(weighted);
HWY_EXPORT(weighted_columns);
}  // namespace

WeightedSums weighted_sums(const float* x, SumWeights weights, int64_t count) {
  return HWY_DYNAMIC_DISPATCH(weighted)(x, weights, count);
}
void weighted_column_sums(const WeightedLines<float>& x, int64_t begin, int64_t end, SumWeights weights,
                          SumArrays out) {
  HWY_DYNAMIC_DISPATCH(weighted_columns)(x, begin, end, weights, out);
}

WeightedSums weighted_sums(const double* x, SumWeights weights, int64_t count) {
  const double *w = weights.of_values, *s = weights.of_squares;
  WeightedSums found;
  for (int64_t i = 0; i < count; ++i) {
    found.sum += x[i] * w[i];
    found.squares += x[i] * x[i] * (s ? s[i] : 1.0);
  }
  return found;
}
void weighted_column_sums(const WeightedLines<double>& x, int64_t begin, int64_t end, SumWeights weights,
                          SumArrays out) {
  const double *w = weights.of_values, *s = weights.of_squares;
  std::fill(out.sums + begin, out.sums + end, 0.0);
  std::fill(out.squares + begin, out.squares + end, 0.0);
  for (int64_t line = 0; line < x.lines; ++line) {
    const double* from = x.data + line * x.stride;
    for (int64_t i = begin; i < end; ++i) {
      out.sums[i] += from[i] * w[line];
      out.squares[i] += from[i] * from[i] * (s ? s[line] : 1.0);
    }
  }
}

}  // namespace sextant::cpu
#endif
