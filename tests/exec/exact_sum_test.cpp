// Exact sums: any order and any division of the same terms gives the same bits, and the right number.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "base/rng.h"
#include "exec/exact_arithmetic.h"

namespace sextant {
namespace {

// Gradients of very different sizes, as f32.
std::vector<double> terms(size_t count) {
  std::vector<double> x(count);
  Random random(1, "terms");
  for (size_t i = 0; i < count; ++i)
    x[i] = static_cast<double>(static_cast<float>(random.normal(i) * 0.1 * std::exp2(-static_cast<double>(i % 40))));
  return x;
}

TEST(ExactTerms, AddUpInAnyOrder) {
  std::vector<double> x = terms(1000);
  double limit = exact_limit(1000);
  for (double& term : x) term = exact_term(term, limit);
  double forward = std::accumulate(x.begin(), x.end(), 0.0), backward = std::accumulate(x.rbegin(), x.rend(), 0.0);
  long double true_sum = 0;
  for (double term : x) true_sum += static_cast<long double>(term);  // 64 bits: exact too
  EXPECT_EQ(forward, backward);
  EXPECT_EQ(static_cast<long double>(forward), true_sum);
}

TEST(ExactTerms, AreMultiplesOfTheQuantumWithinTheRange) {
  EXPECT_EQ(exact_term(0x1p-44, 1), 0x1p-44);
  EXPECT_EQ(exact_term(0x1.8p-44, 1), 0x1p-43);  // to even
  EXPECT_EQ(exact_term(0x1p-46, 1), 0);
  EXPECT_EQ(exact_term(-512, exact_limit(1)), -512);
  EXPECT_EQ(exact_term(513, exact_limit(1)), std::numeric_limits<double>::infinity());
  EXPECT_EQ(exact_term(-65, exact_limit(8)), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(exact_term(std::numeric_limits<double>::quiet_NaN(), 1)));
  EXPECT_FALSE(std::signbit(exact_term(-0.0, 1)));
  EXPECT_FALSE(std::signbit(exact_term(-0x1p-50, 1)));
}

ExactSquares squares_of(const std::vector<double>& x, size_t begin, size_t end, size_t between_carries) {
  ExactSquares sum;
  for (size_t i = begin; i < end; ++i) {
    sum.add_square_of(x[i]);
    if (i % between_carries == 0) sum.carry();
  }
  return sum;
}

TEST(ExactSquares, OfAnyPartsHaveTheSameTotal) {
  std::vector<double> x = terms(5000);
  x[17] = 511.9375, x[18] = -300;
  double whole = squares_of(x, 0, x.size(), x.size()).total();
  for (size_t parts : {2, 3, 7, 100}) {
    ExactSquares sum;
    for (size_t part = 0; part < parts; ++part) {
      ExactSquares some = squares_of(x, part * x.size() / parts, (part + 1) * x.size() / parts, 1 + part);
      some.carry();
      sum.add(some);
    }
    EXPECT_EQ(sum.total(), whole) << parts;
  }
  std::reverse(x.begin(), x.end());
  EXPECT_EQ(squares_of(x, 0, x.size(), 3).total(), whole);
  long double expected = 0;
  for (double value : x) expected += static_cast<long double>(value) * static_cast<long double>(value);
  EXPECT_NEAR(whole, static_cast<double>(expected), 1e-15 * whole);
}

// A tie between two forms of one number: half a quantum more, or half a quantum less of the next.
TEST(ExactSquares, HaveOneTotalInBothFormsOfATie) {
  ExactSquares more, less;
  more.high = less.high = 3, more.middle = 5 * 0x1p-38, less.middle = 6 * 0x1p-38;
  more.low = 0x1p-39, less.low = -0x1p-39;
  EXPECT_EQ(more.total(), less.total());
  more.carry(), less.carry();
  EXPECT_EQ(more.middle, less.middle);
  EXPECT_EQ(more.low, less.low);
}

TEST(ExactSquares, ThatAreTooManyOrNotFiniteAreNotFinite) {
  ExactSquares large;
  large.high = 0x1p46;
  EXPECT_TRUE(std::isinf(large.total()));
  large.high -= 1;
  EXPECT_EQ(large.total(), 0x1p46 - 1);
  for (double bad : {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    ExactSquares sum;
    sum.add_square_of(bad);
    sum.add_square_of(1);
    EXPECT_FALSE(std::isfinite(sum.total()));
  }
}

}  // namespace
}  // namespace sextant
