#include "train/lr_schedule.h"

#include <gtest/gtest.h>

namespace sextant {
namespace {

OptimizerSection optimizer(std::string schedule) {
  return {.lr = 1.0, .min_lr = 0.1, .schedule = std::move(schedule), .warmup = 10, .decay = 20};
}

TEST(LearningRate, WarmUpRisesLinearlyInEverySchedule) {
  for (const char* schedule : {"constant", "cosine", "linear", "wsd", "inverse-sqrt"}) {
    EXPECT_DOUBLE_EQ(learning_rate(optimizer(schedule), 100, 1), 0.1) << schedule;
    EXPECT_DOUBLE_EQ(learning_rate(optimizer(schedule), 100, 10), 1.0) << schedule;
  }
}

TEST(LearningRate, EndsWhereTheScheduleSays) {
  EXPECT_DOUBLE_EQ(learning_rate(optimizer("constant"), 100, 100), 1.0);
  EXPECT_NEAR(learning_rate(optimizer("cosine"), 100, 100), 0.1, 1e-12);
  EXPECT_NEAR(learning_rate(optimizer("cosine"), 100, 55), 0.55, 1e-12);
  EXPECT_NEAR(learning_rate(optimizer("linear"), 100, 55), 0.55, 1e-12);
  EXPECT_NEAR(learning_rate(optimizer("linear"), 100, 100), 0.1, 1e-12);
  EXPECT_DOUBLE_EQ(learning_rate(optimizer("wsd"), 100, 80), 1.0);
  EXPECT_NEAR(learning_rate(optimizer("wsd"), 100, 90), 0.55, 1e-12);
  EXPECT_NEAR(learning_rate(optimizer("inverse-sqrt"), 100, 40), 0.5, 1e-12);
  EXPECT_DOUBLE_EQ(learning_rate(optimizer("inverse-sqrt"), 100000, 100000), 0.1);
}

// The fall of wsd: the last step at the full rate is the one before it, and every step of the twenty falls by as much.
TEST(LearningRate, WsdFallsInEqualSteps) {
  for (int64_t step = 1; step <= 20; ++step)
    EXPECT_NEAR(learning_rate(optimizer("wsd"), 100, 80 + step), 1.0 - 0.9 * static_cast<double>(step) / 20, 1e-12)
        << step;
}

TEST(LearningRate, WithoutWarmUpStartsAtOnce) {
  OptimizerSection o = optimizer("constant");
  o.warmup = 0;
  EXPECT_DOUBLE_EQ(learning_rate(o, 100, 1), 1.0);
}

}  // namespace
}  // namespace sextant
