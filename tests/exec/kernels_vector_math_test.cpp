// The vectorised f32 rows against the plain f64 ones, for every length up to a few vectors (so that every remainder
// occurs), at the ends of the range, and with NaN.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "exec/cpu/kernels/vector_math.h"
#include "exec/cpu/kernels/vector_math_weighted_sums.h"

namespace sextant::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

struct Rows {
  std::vector<float> single;
  std::vector<double> exact;

  Rows(int64_t n, uint64_t stream, double spread = 1) {
    Random random(5, "rows", stream);
    for (uint64_t i = 0; i < static_cast<uint64_t>(n); ++i) {
      single.push_back(static_cast<float>(spread * random.normal(i)));
      exact.push_back(static_cast<double>(single.back()));
    }
  }
  void expect_near(double tolerance) const {
    for (size_t i = 0; i < exact.size(); ++i)
      EXPECT_NEAR(static_cast<double>(single[i]), exact[i], tolerance * (1 + std::abs(exact[i]))) << "element " << i;
  }
};

TEST(VectorMath, ReductionsAgreeForEveryLength) {
  for (int64_t n = 1; n < 140; ++n) {
    Rows a(n, 1), b(n, 2), c(n, 3);
    double tolerance = 1e-6 * std::sqrt(static_cast<double>(n)) * 4;
    const float *fa = a.single.data(), *fb = b.single.data(), *fc = c.single.data();
    const double *da = a.exact.data(), *db = b.exact.data(), *dc = c.exact.data();
    EXPECT_NEAR(static_cast<double>(dot(fa, fb, n)), dot(da, db, n), tolerance);
    EXPECT_NEAR(static_cast<double>(dot_shifted(fa, fb, fc, 0.25f, n)), dot_shifted(da, db, dc, 0.25, n), tolerance);
    EXPECT_NEAR(static_cast<double>(sum(fa, n)), sum(da, n), tolerance);
    EXPECT_EQ(static_cast<double>(largest(fa, n)), largest(da, n));
    EXPECT_NEAR(square_sum(fa, n), square_sum(da, n), 1e-12 * static_cast<double>(n));
  }
}

TEST(VectorMath, MapsAgreeForEveryLength) {
  for (int64_t n = 1; n < 70; ++n) {
    Rows a(n, 1, 4), b(n, 2), c(n, 3), d(n, 4), e(n, 5);
    gelu_row(a.single.data(), d.single.data(), n);
    gelu_row(a.exact.data(), d.exact.data(), n);
    d.expect_near(1e-6);
    gelu_backward_row(b.single.data(), a.single.data(), d.single.data(), n);
    gelu_backward_row(b.exact.data(), a.exact.data(), d.exact.data(), n);
    d.expect_near(2e-6);
    swiglu_row(a.single.data(), b.single.data(), d.single.data(), n);
    swiglu_row(a.exact.data(), b.exact.data(), d.exact.data(), n);
    d.expect_near(1e-6);
    swiglu_backward_row(
        SwigluRow<float>{c.single.data(), a.single.data(), b.single.data(), d.single.data(), e.single.data()}, n);
    swiglu_backward_row(
        SwigluRow<double>{c.exact.data(), a.exact.data(), b.exact.data(), d.exact.data(), e.exact.data()}, n);
    d.expect_near(2e-6);
    e.expect_near(2e-6);
    swish_row(a.single.data(), d.single.data(), 1.702f, n);
    swish_row(a.exact.data(), d.exact.data(), 1.702, n);
    d.expect_near(1e-6);
    swish_backward_row(b.single.data(), a.single.data(), d.single.data(), 1.702f, n);
    swish_backward_row(b.exact.data(), a.exact.data(), d.exact.data(), 1.702, n);
    d.expect_near(2e-6);
    add_scaled(a.single.data(), 0.5f, b.single.data(), n);
    for (size_t i = 0; i < b.exact.size(); ++i) b.exact[i] += 0.5 * a.exact[i];
    b.expect_near(1e-6);
    EXPECT_NEAR(static_cast<double>(exp_and_sum(a.single.data(), n, 0.5f, 1.0f)),
                exp_and_sum(a.exact.data(), n, 0.5, 1.0), 1e-4);
    a.expect_near(1e-6);
  }
}

// Two units in the last place, and the right answers at the ends of the range.
TEST(VectorMath, ExpIsAccurate) {
  for (double x = -87.2; x < 88.3; x += 0.0137) {
    float y = static_cast<float>(x);
    exp_and_sum(&y, 1, 1.0f, 0.0f);
    double exact = std::exp(static_cast<double>(static_cast<float>(x)));
    EXPECT_NEAR(static_cast<double>(y) / exact, 1, 2.4e-7) << x;
  }
  std::vector<float> ends{0.0f, 89.5f, 1000.0f, 1e30f, kInfinity, -88.0f, -1000.0f, -1e30f, -kInfinity};
  exp_and_sum(ends.data(), static_cast<int64_t>(ends.size()), 1.0f, 0.0f);
  EXPECT_EQ(ends, (std::vector<float>{1, kInfinity, kInfinity, kInfinity, kInfinity, 0, 0, 0, 0}));
}

TEST(VectorMath, NanComesThrough) {
  for (int64_t n : {1, 3, 8, 19}) {
    std::vector<float> x(static_cast<size_t>(n), 0.5f), y(x.size()), z(x.size()), ones(x.size(), 1.0f);
    x.back() = kNan;
    gelu_row(x.data(), y.data(), n);
    EXPECT_TRUE(std::isnan(y.back()));
    gelu_backward_row(ones.data(), x.data(), y.data(), n);
    EXPECT_TRUE(std::isnan(y.back()));
    swiglu_row(x.data(), ones.data(), y.data(), n);
    EXPECT_TRUE(std::isnan(y.back()));
    swiglu_backward_row(SwigluRow<float>{ones.data(), x.data(), ones.data(), y.data(), z.data()}, n);
    EXPECT_TRUE(std::isnan(y.back()) && std::isnan(z.back()));
    swish_row(x.data(), y.data(), 1.702f, n);
    EXPECT_TRUE(std::isnan(y.back()));
    swish_backward_row(ones.data(), x.data(), y.data(), 1.702f, n);
    EXPECT_TRUE(std::isnan(y.back()));
    EXPECT_TRUE(std::isnan(dot(x.data(), ones.data(), n)));
    EXPECT_TRUE(std::isnan(square_sum(x.data(), n)));
    EXPECT_TRUE(std::isnan(exp_and_sum(x.data(), n, 1.0f, 0.0f)));
  }
}

// Against sums of one number at a time, for counts with and without a rest, and for columns inside of lines.
TEST(WeightedSums, AreThoseOfPlainLoops) {
  constexpr int64_t kLines = 37, kStride = 101;
  std::vector<float> x(kLines * kStride);
  std::vector<double> w(kStride), s(kStride);
  for (size_t i = 0; i < x.size(); ++i) x[i] = 0.1f * static_cast<float>(static_cast<int>(i * 37 % 211) - 100);
  for (size_t i = 0; i < w.size(); ++i) w[i] = i % 3 == 0 ? -1.0 : 1.0, s[i] = 0.5 + 0.01 * static_cast<double>(i);
  for (const double* squares : {static_cast<const double*>(nullptr), static_cast<const double*>(s.data())}) {
    auto scale = [&](int64_t i) { return squares ? squares[i] : 1.0; };
    for (int64_t count : {0, 1, 7, 16, 33, 100}) {
      double sum = 0, square = 0;
      for (int64_t i = 0; i < count; ++i) {
        auto v = static_cast<double>(x[static_cast<size_t>(i)]);
        sum += v * w[static_cast<size_t>(i)];
        square += v * v * scale(i);
      }
      WeightedSums found = weighted_sums(x.data(), {w.data(), squares}, count);
      EXPECT_NEAR(found.sum, sum, 1e-9) << count;
      EXPECT_NEAR(found.squares, square, 1e-9) << count;
    }
    for (auto [begin, end] : {std::pair<int64_t, int64_t>{0, 101}, {3, 4}, {16, 32}, {5, 90}}) {
      constexpr double kUntouched = 12345;
      std::vector<double> sums(kStride, kUntouched), sizes(kStride, kUntouched);
      weighted_column_sums({x.data(), kStride, kLines}, begin, end, {w.data(), squares}, {sums.data(), sizes.data()});
      for (int64_t j = 0; j < kStride; ++j) {
        double sum = 0, square = 0;
        for (int64_t line = 0; line < kLines; ++line) {
          auto v = static_cast<double>(x[static_cast<size_t>(line * kStride + j)]);
          sum += v * w[static_cast<size_t>(line)];
          square += v * v * scale(line);
        }
        bool inside = begin <= j && j < end;
        EXPECT_NEAR(sums[static_cast<size_t>(j)], inside ? sum : kUntouched, 1e-9) << begin << " " << j;
        EXPECT_NEAR(sizes[static_cast<size_t>(j)], inside ? square : kUntouched, 1e-9) << begin << " " << j;
      }
    }
  }
}

}  // namespace
}  // namespace sextant::cpu
