// Where the time of a rank goes: messages and input apart from its own work, and nothing of what lies between steps.
#include "train/health/step_clock.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "comm/message_timer.h"

namespace sextant {
namespace {

void spend(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

TEST(StepClocks, CountWhatBelongsToSteps) {
  RankStatus status;
  StepClock clock(&status);
  spend(30);  // before the first step
  clock.resume();
  {
    MessageTimer timer(&status);
    spend(20);
  }
  spend(40);
  clock.add_input(0.01);
  RankTimes first = clock.take();
  EXPECT_GE(first.waited, 0.02);
  EXPECT_NEAR(first.input, 0.01, 1e-12);
  EXPECT_GE(first.work(), 0.03 - 1e-3);  // 40 ms less the input
  {
    MessageTimer timer(&status);  // of the end of the step: it counts with the next one
    spend(10);
  }
  clock.pause();
  {
    MessageTimer timer(&status);
    spend(1000);  // a checkpoint
  }
  clock.resume();
  clock.resume();
  RankTimes second = clock.take();
  EXPECT_GE(second.waited, 0.01);
  EXPECT_LT(second.waited + second.work(), 0.9);
  EXPECT_NEAR(second.input, 0, 1e-12);
  EXPECT_GE(second.processor, second.cpu - 1e-3);
  EXPECT_LT(second.cpu, second.step);
  EXPECT_GT(second.crowding, 0);  // this thread runs
  EXPECT_EQ(clock.last().step, second.step);
  std::optional<RankTimes> means = clock.take_means();
  ASSERT_TRUE(means);
  EXPECT_NEAR(means->waited, (first.waited + second.waited) / 2, 1e-9);
  EXPECT_FALSE(clock.take_means());
}

TEST(StepClocks, LeaveStepsOutOfTheirMeans) {
  StepClock clock(nullptr);
  clock.resume();
  clock.leave_out(1);
  spend(50);
  EXPECT_GE(clock.take().step, 0.05);
  EXPECT_FALSE(clock.take_means());
  RankTimes second = clock.take();
  ASSERT_TRUE(clock.take_means());
  EXPECT_LT(second.step, 0.05);
}

TEST(StepClocks, HaveNoMessagesWhereThereAreNoRanks) {
  StepClock clock(nullptr);
  clock.resume();
  spend(5);
  RankTimes times = clock.take();
  EXPECT_EQ(times.waited, 0);
  EXPECT_GE(times.work(), 0.005);
}

}  // namespace
}  // namespace sextant
