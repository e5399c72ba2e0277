// The vectorised normal distribution behind gelu_erf, against the C library's in double.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "exec/cpu/kernels/vector_math.h"

namespace sextant {
namespace {

TEST(GeluErf, IsThatOfTheCLibraryInSinglePrecision) {
  std::vector<float> x, ones;
  for (float value = -14; value < 14; value += 0.0037f) x.push_back(value);
  ones.assign(x.size(), 1.0f);
  std::vector<float> y(x.size()), slope(x.size());
  auto n = static_cast<int64_t>(x.size());
  cpu::gelu_erf_row(x.data(), y.data(), n);
  cpu::gelu_erf_backward_row(ones.data(), x.data(), slope.data(), n);
  for (size_t i = 0; i < x.size(); ++i) {
    double at = x[i], below = std::erfc(-at / std::sqrt(2.0)) / 2,
           density = std::exp(-at * at / 2) / std::sqrt(2 * M_PI);
    EXPECT_NEAR(y[i], at * below, 2e-7 * std::max(1.0, std::abs(at))) << at;
    EXPECT_NEAR(slope[i], below + at * density, 5e-7) << at;
  }
}

TEST(GeluErf, EndsAreCleanAndNaNComesThrough) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> x{1e30f, -1e30f, 0, nan, 40, -40}, y(x.size());
  cpu::gelu_erf_row(x.data(), y.data(), static_cast<int64_t>(x.size()));
  EXPECT_EQ(y[0], 1e30f);
  EXPECT_EQ(y[1], 0);
  EXPECT_EQ(y[2], 0);
  EXPECT_TRUE(std::isnan(y[3]));
  EXPECT_EQ(y[4], 40);
  EXPECT_EQ(y[5], 0);
}

}  // namespace
}  // namespace sextant
