#include "optim/lr_schedule.h"

#include <gtest/gtest.h>

namespace sextant {
namespace {

constexpr LrSettings kSettings{.lr = 1.0, .min_lr = 0.1, .warmup = 10, .decay = 20, .steps = 100};

double rate(LrSchedule schedule, int64_t step) {
  return learning_rate(schedule, kSettings, step);
}

TEST(LearningRate, WarmUpRisesLinearlyInEverySchedule) {
  for (const LrScheduleChoice& schedule : kLrSchedules) {
    EXPECT_DOUBLE_EQ(rate(schedule.value, 1), 0.1) << schedule.word;
    EXPECT_DOUBLE_EQ(rate(schedule.value, 10), 1.0) << schedule.word;
  }
}

TEST(LearningRate, EndsWhereTheScheduleSays) {
  EXPECT_DOUBLE_EQ(rate(LrSchedule::constant, 100), 1.0);
  EXPECT_NEAR(rate(LrSchedule::cosine, 100), 0.1, 1e-12);
  EXPECT_NEAR(rate(LrSchedule::cosine, 55), 0.55, 1e-12);
  EXPECT_NEAR(rate(LrSchedule::linear, 55), 0.55, 1e-12);
  EXPECT_NEAR(rate(LrSchedule::linear, 100), 0.1, 1e-12);
  EXPECT_DOUBLE_EQ(rate(LrSchedule::wsd, 80), 1.0);
  EXPECT_NEAR(rate(LrSchedule::wsd, 90), 0.55, 1e-12);
  EXPECT_NEAR(rate(LrSchedule::inverse_sqrt, 40), 0.5, 1e-12);
  EXPECT_DOUBLE_EQ(
      learning_rate(LrSchedule::inverse_sqrt, {.lr = 1.0, .min_lr = 0.1, .warmup = 10, .steps = 100000}, 100000), 0.1);
}

// The fall of wsd: the last step at the full rate is the one before it, and every step of the twenty falls by as much.
TEST(LearningRate, WsdFallsInEqualSteps) {
  for (int64_t step = 1; step <= 20; ++step)
    EXPECT_NEAR(rate(LrSchedule::wsd, 80 + step), 1.0 - 0.9 * static_cast<double>(step) / 20, 1e-12) << step;
}

TEST(LearningRate, WithoutWarmUpStartsAtOnce) {
  EXPECT_DOUBLE_EQ(learning_rate(LrSchedule::constant, {.lr = 1.0, .steps = 100}, 1), 1.0);
}

}  // namespace
}  // namespace sextant
