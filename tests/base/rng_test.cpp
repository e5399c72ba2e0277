#include "base/rng.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sextant {
namespace {

// Known answers published with Random123 (philox4x32, ten rounds).
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox(0, 0, 0), (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  uint64_t ones = ~uint64_t{0};
  EXPECT_EQ(philox(ones, ones, ones), (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox(0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88),
            (std::array<uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, MomentsAndIndependenceOfPurpose) {
  Random a(1, "weights"), b(1, "other");
  double sum = 0, squares = 0, cross = 0;
  const int n = 200000;
  for (int i = 0; i < n; ++i) {
    double x = a.normal(static_cast<uint64_t>(i));
    sum += x, squares += x * x, cross += x * b.normal(static_cast<uint64_t>(i));
  }
  EXPECT_NEAR(sum / n, 0, 0.01);
  EXPECT_NEAR(squares / n, 1, 0.02);
  EXPECT_NEAR(cross / n, 0, 0.01);
}

// Numbers follow from their Philox bits. Initial weights and the order of data follow from these numbers, and must not
// change.
TEST(Random, NumbersAreMadeOfTheirBits) {
  Random random(7, "of this test", 3);
  double sum = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    auto r = philox(random.key(), 3, i);
    uint64_t bits = (uint64_t{r[1]} << 32) | r[0];
    EXPECT_EQ(random.bits(i), bits);
    EXPECT_EQ(random.uniform(i), static_cast<double>(bits >> 11) / 9007199254740992.0);
    EXPECT_LT(random.uniform(i), 1);
    double u = (static_cast<double>(r[0]) + 0.5) / 4294967296.0, v = static_cast<double>(r[1]) / 4294967296.0;
    EXPECT_DOUBLE_EQ(random.normal(i), std::sqrt(-2 * std::log(u)) * std::cos(2 * M_PI * v));
    EXPECT_LT(random.below(i, 10), 10u);
    sum += random.uniform(i);
  }
  EXPECT_NEAR(sum / 1000, 0.5, 0.05);
}

}  // namespace
}  // namespace sextant
