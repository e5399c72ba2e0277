// Blends and splits of drawn shares: what every prefix, every period and every token must satisfy.
#include "data/blend.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>
#include <set>

#include "base/error.h"
#include "data/skipped_records.h"

namespace sextant {
namespace {

TEST(BlendOfDrawnWeights, IsNearItsSharesInEveryPrefix) {
  std::mt19937 random(5);
  for (int turn = 0; turn < 60; ++turn) {
    std::vector<double> weights(2 + random() % 5);
    for (double& weight : weights) weight = 1 + static_cast<double>(random() % 1000) / 100;
    const int64_t slots = 20 + static_cast<int64_t>(random() % 300);
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    Blend blend(weights, slots);
    std::vector<int64_t> taken(weights.size());
    for (int64_t k = 0; k < 3 * slots + 7; ++k) {
      Blend::Pick pick = blend.at(k);
      auto source = static_cast<size_t>(pick.source);
      ASSERT_EQ(pick.index, taken[source]++) << "sample " << k << ": sources are read in order, each sample once";
      for (size_t i = 0; i < weights.size(); ++i) {
        double share = weights[i] / sum * static_cast<double>(k + 1);
        // Whole slots of a period are off by less than one of it, and a source is behind or ahead by less than one.
        double periods = static_cast<double>(k / slots + 1);
        ASSERT_LT(std::abs(static_cast<double>(taken[i]) - share), 1 + periods) << "source " << i << " after " << k + 1;
      }
    }
    // Of one period: the nearest whole numbers that add up, so none is off by one or more.
    std::vector<int64_t> period(weights.size());
    for (int64_t k = 0; k < slots; ++k) ++period[static_cast<size_t>(blend.at(k).source)];
    double largest_rounded_up = -1, least_rounded_down = 2;
    for (size_t i = 0; i < weights.size(); ++i) {
      double exact = weights[i] / sum * static_cast<double>(slots), rest = exact - std::floor(exact);
      ASSERT_LT(std::abs(static_cast<double>(period[i]) - exact), 1);
      if (static_cast<double>(period[i]) > exact) least_rounded_down = std::min(least_rounded_down, rest);
      if (static_cast<double>(period[i]) < exact) largest_rounded_up = std::max(largest_rounded_up, rest);
    }
    EXPECT_LE(largest_rounded_up, least_rounded_down + 1e-9) << "slots left over go to the largest remainders";
  }
}

TEST(SkippedRecordsLimit, IsATenthAndAHundred) {
  auto refuses = [](int64_t skipped, int64_t read) {
    SkippedRecords records;
    for (int64_t i = 0; i < skipped; ++i) records.add("a place");
    try {
      require_few_skipped(records, read, "file");
      return false;
    } catch (const UserError&) {
      return true;
    }
  };
  EXPECT_FALSE(refuses(99, 0));
  EXPECT_TRUE(refuses(100, 0));
  EXPECT_FALSE(refuses(100, 900));
  EXPECT_TRUE(refuses(100, 899));
  EXPECT_FALSE(refuses(500, 4500));
  EXPECT_TRUE(refuses(501, 4500));
}

}  // namespace
}  // namespace sextant
