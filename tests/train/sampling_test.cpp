#include "generate/sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "base/rng.h"

namespace sextant {
namespace {

const std::vector<float> kLogits{0.0f, 2.0f, 1.0f, -1.0f, 2.0f};

TEST(Sampling, ZeroTemperatureTakesTheFirstLikeliest) {
  EXPECT_EQ(TokenSampler({.temperature = 0}).sample(kLogits, 0.99), 1u);
}

TEST(Sampling, FrequenciesAreTheSoftmax) {
  TokenSampler sampler({.temperature = 1});
  std::map<uint32_t, double> counts;
  const int n = 200000;
  Random random(1, "test");
  for (int i = 0; i < n; ++i) counts[sampler.sample(kLogits, random.uniform(static_cast<uint64_t>(i)))] += 1.0 / n;
  double total = 0;
  for (float x : kLogits) total += std::exp(x);
  for (size_t id = 0; id < kLogits.size(); ++id)
    EXPECT_NEAR(counts[static_cast<uint32_t>(id)], std::exp(kLogits[id]) / total, 0.005) << id;
}

TEST(Sampling, TopKAndTopPKeepTheLikeliest) {
  for (double u : {0.0, 0.3, 0.6, 0.999}) {
    uint32_t k = TokenSampler({.temperature = 1, .top_k = 2}).sample(kLogits, u);
    EXPECT_TRUE(k == 1 || k == 4);
    EXPECT_EQ(TokenSampler({.temperature = 1, .top_k = 1}).sample(kLogits, u), 1u);
    EXPECT_EQ(TokenSampler({.temperature = 1, .top_p = 0.1}).sample(kLogits, u), 1u);
    uint32_t p = TokenSampler({.temperature = 1, .top_p = 0.7}).sample(kLogits, u);
    EXPECT_TRUE(p == 1 || p == 4);
  }
}

}  // namespace
}  // namespace sextant
