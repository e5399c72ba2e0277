// The numbers of 8-bit optimizer states against bitsandbytes' own (tests/peers/make_dynamic_map_fixture.py), their
// codes against a search through all of them, and stochastic rounding to bf16 over all of its random bits.
#include "base/dynamic_map.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <filesystem>
#include <sstream>
#include <string>

#include "base/bf16.h"
#include "base/files.h"
#include "base/rng.h"
#include "checkout.h"

namespace sextant {
namespace {

TEST(DynamicMap, IsThatOfBitsandbytesBitByBit) {
  std::filesystem::path file =
      std::filesystem::path(checkout::kSources) / "tests/fixtures/dynamic_maps/bitsandbytes.csv";
  std::istringstream lines(read_file(file));
  std::string line;
  std::getline(lines, line);  // the version
  std::getline(lines, line);  // names of columns
  for (int code = 0; code < 256; ++code) {
    ASSERT_TRUE(std::getline(lines, line)) << code;
    EXPECT_EQ(std::bit_cast<uint32_t>(kSignedMap.value[code]), std::stoul(line.substr(0, 8), nullptr, 16)) << code;
    EXPECT_EQ(std::bit_cast<uint32_t>(kPositiveMap.value[code]), std::stoul(line.substr(9, 8), nullptr, 16)) << code;
  }
}

int nearest_by_search(const DynamicMap& map, float x) {
  int best = 0;
  for (int code = 1; code < 256; ++code)
    if (std::abs(static_cast<double>(map.value[code]) - static_cast<double>(x)) <
        std::abs(static_cast<double>(map.value[best]) - static_cast<double>(x)))
      best = code;
  return best;
}

TEST(DynamicMap, CodesAreThoseOfTheNearestNumber) {
  Random random(5, "codes");
  for (uint64_t i = 0; i < 4000; ++i) {
    // All orders of magnitude alike, and some beyond the ends.
    auto x = static_cast<float>(1.01 * std::pow(10, -8 * random.uniform(2 * i)));
    if (random.uniform(2 * i + 1) < 0.5) x = -x;
    EXPECT_EQ(nearest_code(kSignedMap.value, x), nearest_by_search(kSignedMap, x)) << x;
    EXPECT_EQ(nearest_code(kPositiveMap.value, x), nearest_by_search(kPositiveMap, x)) << x;
  }
  for (const DynamicMap* map : {&kSignedMap, &kPositiveMap})
    for (int code = 0; code < 256; ++code) EXPECT_EQ(nearest_code(map->value, map->value[code]), code);
}

// The bounds of docs/precision.md for a mean that is kept in 8 bits, as shares of the largest of its block.
TEST(DynamicMap, RoundsNoFurtherThanHalfTheWidestGap) {
  for (const auto& [map, bound] : {std::pair{&kSignedMap, 0.0071f}, std::pair{&kPositiveMap, 0.00352f}}) {
    float widest = 0;
    for (int code = 0; code < 255; ++code) widest = std::max(widest, map->value[code + 1] - map->value[code]);
    EXPECT_LE(widest / 2, bound);
    EXPECT_GE(widest / 2, 0.98f * bound);
  }
  EXPECT_EQ(kSignedMap.value[0], -kSignedMap.value[254]);
}

TEST(DynamicMap, ASecondMomentAboveZeroStaysAboveIt) {
  EXPECT_EQ(nearest_code_above_zero(kPositiveMap.value, 0.0f), 0);
  EXPECT_EQ(nearest_code_above_zero(kPositiveMap.value, 1e-30f), 1);
  EXPECT_EQ(nearest_code(kPositiveMap.value, 1e-30f), 0);
  EXPECT_EQ(nearest_code_above_zero(kPositiveMap.value, 1.0f), 255);
}

TEST(StochasticRounding, HasTheMeanOfTheNumber) {
  for (float x : {1.0f, 1.00123f, -3.14159f, 1e-20f, 1e-40f, 65537.0f}) {
    double sum = 0;
    for (uint32_t random = 0; random < 0x10000; ++random)
      sum += static_cast<double>(bf16_value(bf16_bits_at_random(x, random)));
    EXPECT_NEAR(sum / 0x10000, static_cast<double>(x), 1e-12 * std::abs(static_cast<double>(x))) << x;
  }
}

TEST(StochasticRounding, LeavesWhatIsNotFiniteAndWhatIsExact) {
  EXPECT_EQ(bf16_bits_at_random(INFINITY, 0xFFFF), 0x7F80);
  EXPECT_EQ(bf16_bits_at_random(-INFINITY, 0xFFFF), 0xFF80);
  EXPECT_TRUE(std::isnan(bf16_value(bf16_bits_at_random(std::bit_cast<float>(0x7FFFFFFFu), 0xFFFF))));
  EXPECT_EQ(bf16_bits_at_random(-1.5f, 0xFFFF), bf16_bits(-1.5f));
}

}  // namespace
}  // namespace sextant
