// Quantised weights against what transformers and torch make of them (tests/peers/make_expert_fixtures.py).
#include "ckpt/quantized.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "checkout.h"
#include "ckpt/safetensors_writer.h"
#include "scratch.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

const fs::path kQuantized = fs::path(checkout::kSources) / "tests/fixtures/expert_files";

std::vector<float> plain_floats(const TensorView& view) {
  std::vector<float> x(static_cast<size_t>(view.shape.count()));
  std::memcpy(x.data(), view.bytes.data(), view.bytes.size());
  return x;
}

// Bit for bit; one NaN is as good as another.
void expect_same_numbers(const std::vector<float>& got, const std::vector<float>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(wanted[i]))
      EXPECT_TRUE(std::isnan(got[i])) << i;
    else
      EXPECT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(wanted[i])) << i << ": " << wanted[i];
  }
}

TEST(Mxfp4, EveryCodeWithTheLeastAndGreatestScales) {
  WeightsReader source(kQuantized / "mxfp4.safetensors");
  auto weights = Mxfp4Weights::find(source, "w", {1, 3, 32});
  ASSERT_TRUE(weights);
  std::vector<float> got(96), last(32), wanted = plain_floats(source.tensor("expected"));
  weights->load(0, {0, 3}, got);
  expect_same_numbers(got, wanted);
  weights->load(0, {2, 3}, last);
  expect_same_numbers(last, {wanted.begin() + 64, wanted.end()});
  EXPECT_FALSE(Mxfp4Weights::find(source, "v", {1, 3, 32}));
}

TEST(Mxfp4, OtherShapesAreRefused) {
  WeightsReader source(kQuantized / "mxfp4.safetensors");
  EXPECT_THROW(Mxfp4Weights::find(source, "w", {1, 3, 48}), UserError);  // no multiple of 32
  EXPECT_THROW(Mxfp4Weights::find(source, "w", {1, 3, 64}), UserError);
  EXPECT_THROW(Mxfp4Weights::find(source, "w", {2, 3, 32}), UserError);
}

TEST(Fp8, BlocksWithSmallerLastOnes) {
  WeightsReader source(kQuantized / "fp8.safetensors");
  auto weights = Fp8Weights::find(source, "w", {0, 130, 260});
  ASSERT_TRUE(weights);
  std::vector<float> got(130 * 260), wanted = plain_floats(source.tensor("expected"));
  weights->load(0, {0, 130}, got);
  expect_same_numbers(got, wanted);
  std::vector<float> ends(3 * 260);
  weights->load(0, {127, 130}, ends);
  expect_same_numbers(ends, {wanted.begin() + 127 * 260, wanted.end()});
}

TEST(Fp8, OtherShapesAreRefused) {
  WeightsReader source(kQuantized / "fp8.safetensors");
  EXPECT_THROW(Fp8Weights::find(source, "w", {0, 130, 128}), UserError);
  EXPECT_FALSE(Fp8Weights::find(source, "expected", {0, 130, 260}));
}

}  // namespace
}  // namespace sextant
