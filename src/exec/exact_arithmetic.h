// The arithmetic of ops/exact_sum.cpp, on any device. Every number is a multiple of a power of two and small enough
// that f64 adds without rounding; so the order of additions cannot matter.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#ifdef __CUDACC__
#define SEXTANT_EXACT_ON_ANY_DEVICE __host__ __device__
#else
#define SEXTANT_EXACT_ON_ANY_DEVICE
#endif

namespace sextant {

// Sums are multiples of 2^-44 below 2^9: 53 bits. Gradients are those of the mean loss of a step: elements of 512
// belong to runs that are lost, and what is below the quantum to elements that AdamW's eps of 1e-8 holds still.
inline constexpr double kExactRange = 0x1p9;

// Largest allowed magnitude of each of `terms` terms.
inline double exact_limit(int64_t terms) {
  return kExactRange / static_cast<double>(terms);
}

// x as a term. Never −0, so that a term of 0 changes no sum.
SEXTANT_EXACT_ON_ANY_DEVICE inline double exact_term(double x, double limit) {
  double rounded = rint(x * 0x1p44) * 0x1p-44 + 0.0;
  return fabs(x) <= limit ? rounded : x * std::numeric_limits<double>::infinity();
}

// A sum of squares in three bins. A square of an element below 2^9 has 48 bits at most where the element has 24; below
// 2^-70 it is rounded. Partial sums of squares grow, so a total below 2^46 says that no sum on the way to it has
// rounded: 2^53 multiples of 2^-6 is 2^47.
struct ExactSquares {
  static constexpr double kMost = 0x1p46;
  static constexpr int64_t kBetweenCarries = 1 << 20;  // terms of at most 2^31 quanta, in 53 bits

  double high = 0, middle = 0, low = 0;

  SEXTANT_EXACT_ON_ANY_DEVICE void add_square_of(double x) {
    double square = x * x;
    double h = rint(square * 0x1p6) * 0x1p-6;
    double rest = square - h;
    double m = rint(rest * 0x1p38) * 0x1p-38;
    double l = rint((rest - m) * 0x1p70) * 0x1p-70;
    high += h;
    middle += m;
    low += l;
  }

  SEXTANT_EXACT_ON_ANY_DEVICE void add(const ExactSquares& other) {
    high += other.high;
    middle += other.middle;
    low += other.low;
  }

  // The same number, with what is left in the lower bins not negative and below one quantum of the next. One number has
  // one such form. Rounds down, since to the nearest there are two at a tie.
  SEXTANT_EXACT_ON_ANY_DEVICE void carry() {
    double up = floor(low * 0x1p38) * 0x1p-38;
    low -= up;
    middle += up;
    up = floor(middle * 0x1p6) * 0x1p-6;
    middle -= up;
    high += up;
  }

  SEXTANT_EXACT_ON_ANY_DEVICE double total() const {
    ExactSquares carried = *this;
    carried.carry();
    if (carried.high >= kMost) return std::numeric_limits<double>::infinity();
    return carried.high + (carried.middle + carried.low);
  }
};
static_assert(sizeof(ExactSquares) == 3 * sizeof(double));

}  // namespace sextant
