// Whether two runs came to the same.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "ckpt/weights_reader.h"

namespace sextant {

inline double loss_at(const std::vector<std::string>& losses, size_t i) {
  return std::stod(losses[i]);
}

inline void expect_same_losses(const std::vector<std::string>& got, const std::vector<std::string>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(loss_at(got, i), loss_at(expected, i), 1e-5 * loss_at(expected, i)) << "step " << i + 1;
}

// Of two checkpoints, as a whole tensor at a time.
inline void expect_same_weights(const std::filesystem::path& a, const std::filesystem::path& b) {
  WeightsReader left(a), right(b);
  for (const std::string& name : left.names()) {
    TensorView x = left.tensor(name), y = right.tensor(name);
    ASSERT_EQ(x.bytes.size(), y.bytes.size()) << name;
    const float* p = reinterpret_cast<const float*>(x.bytes.data());
    const float* q = reinterpret_cast<const float*>(y.bytes.data());
    double difference = 0, size = 0;
    for (size_t i = 0; i < x.bytes.size() / 4; ++i) {
      difference += (p[i] - q[i]) * (p[i] - q[i]);
      size += p[i] * p[i];
    }
    EXPECT_LE(std::sqrt(difference), 1e-4 * std::sqrt(size) + 1e-7) << name;
  }
}

}  // namespace sextant
