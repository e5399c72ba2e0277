#include "replay/output_summary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace sextant {
namespace {

TEST(OutputSummary, CountsAndStatistics) {
  std::vector<float> numbers{3, -4, std::nanf(""), 0, std::numeric_limits<float>::infinity(), 1};
  Tensor tensor{numbers.data(), DType::f32, LocalShape{2, 3}};
  OutputSummary summary = summarize(tensor, GlobalShape{2, 3}, 0);
  EXPECT_EQ(summary.count, 6);
  EXPECT_EQ(summary.non_finite, 2);
  EXPECT_EQ(summary.least, -4);
  EXPECT_EQ(summary.most, 3);
  EXPECT_DOUBLE_EQ(summary.rms(), std::sqrt(26.0 / 4));
  EXPECT_EQ(summary.first_non_finite, (std::vector<int64_t>{0, 2}));
}

// Two ranks that hold the even and the odd columns, with a column of padding each.
TEST(OutputSummary, FingerprintsOfShardsAddUpToTheWhole) {
  std::vector<float> whole(4 * 6);
  for (size_t i = 0; i < whole.size(); ++i) whole[i] = std::sin(static_cast<float>(i));
  Tensor all{whole.data(), DType::f32, LocalShape{4, 6}};
  OutputSummary expected = summarize(all, GlobalShape{4, 6}, 100);
  OutputSummary joined;
  for (int64_t rank : {0, 1}) {
    std::vector<float> part(4 * 4, std::nanf(""));
    Placement placement{.dims = {{{0, 0, 4}}, {}}};
    for (int64_t i = 0; i < 3; ++i) {
      placement.dims[1].push_back({2 * i + rank, i, 1});
      for (int64_t row = 0; row < 4; ++row)
        part[static_cast<size_t>(row * 4 + i)] = whole[static_cast<size_t>(row * 6 + 2 * i + rank)];
    }
    joined.merge(summarize({part.data(), DType::f32, LocalShape{4, 4}, &placement}, GlobalShape{4, 6}, 100));
  }
  EXPECT_EQ(joined.count, 24);
  EXPECT_EQ(joined.non_finite, 0);
  EXPECT_DOUBLE_EQ(joined.least, expected.least);
  EXPECT_DOUBLE_EQ(joined.most, expected.most);
  EXPECT_NEAR(joined.rms(), expected.rms(), 1e-12);
  EXPECT_LT(joined.fingerprint.distance(expected.fingerprint), 1e-12);
}

TEST(OutputSummary, DistanceOfFingerprintsIsAboutThatOfTensors) {
  std::vector<float> a(5000), b(5000);
  double squares = 0, norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] = std::sin(static_cast<float>(i)), b[i] = a[i] + 0.01f * std::cos(static_cast<float>(3 * i));
    squares += (a[i] - b[i]) * (a[i] - b[i]), norm += a[i] * a[i];
  }
  Fingerprint left = summarize({a.data(), DType::f32, LocalShape{5000}}, GlobalShape{5000}, 0).fingerprint;
  Fingerprint right = summarize({b.data(), DType::f32, LocalShape{5000}}, GlobalShape{5000}, 0).fingerprint;
  EXPECT_NEAR(left.distance(right) / std::sqrt(squares), 1, 0.6);
  EXPECT_NEAR(left.norm() / std::sqrt(norm), 1, 0.6);
  EXPECT_EQ(left.distance(left), 0);
}

}  // namespace
}  // namespace sextant
