#include "generate/sampling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/rng.h"

namespace sextant {
namespace {

const std::vector<float> kLogits{0.0f, 2.0f, 1.0f, -1.0f, 2.0f};

TEST(Sampling, ZeroTemperatureTakesTheFirstLikeliest) {
  EXPECT_EQ(TokenSampler({.temperature = 0}).sample(kLogits, 0.99), 1u);
}

// The distribution itself, written out as the definition says: softmax at the temperature, of that the `top_k`
// likeliest (ties: the lower id), of those the fewest that hold at least `top_p` of what is left, and the rest of the
// weight goes to them.
std::vector<double> exact_distribution(const std::vector<float>& logits, const SamplingOptions& options) {
  std::vector<double> p;
  for (float x : logits) p.push_back(std::exp(static_cast<double>(x) / options.temperature));
  std::vector<size_t> order(p.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p[a] > p[b]; });
  auto normalise = [&] {
    double total = std::accumulate(p.begin(), p.end(), 0.0);
    for (double& x : p) x /= total;
  };
  normalise();
  if (options.top_k > 0)
    for (size_t i = static_cast<size_t>(options.top_k); i < order.size(); ++i) p[order[i]] = 0;
  normalise();
  double held = 0;
  for (size_t id : order) {
    double mass = p[id];
    if (held >= options.top_p) p[id] = 0;
    held += mass;
  }
  normalise();
  return p;
}

struct FrequencyCase {
  const char* name;
  SamplingOptions options;
};

class SamplingFrequencies : public testing::TestWithParam<FrequencyCase> {};

// Pearson's test with a fixed seed. The bound is the 1 − 1e-6 quantile of chi-square for 11 degrees of freedom, the
// most there are; a weight that is wrong by 3 % of its token's share shows.
TEST_P(SamplingFrequencies, AreTheExactDistribution) {
  const std::vector<float> logits{0.3f, 2.0f, 1.1f, -1.0f, 2.0f, 0.9f, -0.4f, 1.7f, 0.0f, -2.5f, 1.3f, 0.6f};
  constexpr int kDraws = 400'000;
  std::vector<double> exact = exact_distribution(logits, GetParam().options);
  TokenSampler sampler(GetParam().options);
  Random random(11, "sampling frequencies");
  std::vector<double> counts(logits.size());
  for (int i = 0; i < kDraws; ++i) counts[sampler.sample(logits, random.uniform(static_cast<uint64_t>(i)))] += 1;
  double chi_square = 0;
  for (size_t id = 0; id < exact.size(); ++id) {
    if (exact[id] == 0) {
      EXPECT_EQ(counts[id], 0) << "token " << id << " was cut off";
      continue;
    }
    double expected = exact[id] * kDraws;
    chi_square += (counts[id] - expected) * (counts[id] - expected) / expected;
  }
  EXPECT_LT(chi_square, 49.5);
}

INSTANTIATE_TEST_SUITE_P(
    Settings, SamplingFrequencies,
    testing::Values(FrequencyCase{"softmax", {.temperature = 1}}, FrequencyCase{"cold", {.temperature = 0.5}},
                    FrequencyCase{"hot", {.temperature = 2.5}}, FrequencyCase{"top_k", {.temperature = 1, .top_k = 5}},
                    FrequencyCase{"top_k_cold", {.temperature = 0.7, .top_k = 3}},
                    FrequencyCase{"top_k_of_all", {.temperature = 1, .top_k = 12}},
                    FrequencyCase{"top_p", {.temperature = 1, .top_p = 0.8}},
                    FrequencyCase{"top_p_hot", {.temperature = 2, .top_p = 0.6}},
                    FrequencyCase{"top_k_and_top_p", {.temperature = 1, .top_k = 6, .top_p = 0.75}},
                    FrequencyCase{"top_k_and_top_p_hot", {.temperature = 1.5, .top_k = 8, .top_p = 0.9}}),
    [](const auto& info) { return std::string(info.param.name); });

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
