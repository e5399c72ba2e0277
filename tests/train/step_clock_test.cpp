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
  StepClock::Times first = clock.take();
  EXPECT_GE(first.message_s, 0.02);
  EXPECT_EQ(first.input_s, 0.01);
  EXPECT_GE(first.own_s, 0.03 - 1e-3);  // 40 ms less the input
  {
    MessageTimer timer(&status);  // of the end of the step: it counts with the next one
    spend(10);
  }
  clock.pause();
  {
    MessageTimer timer(&status);
    spend(200);  // a checkpoint
  }
  clock.resume();
  clock.resume();
  StepClock::Times second = clock.take();
  EXPECT_GE(second.message_s, 0.01);
  EXPECT_LT(second.message_s + second.own_s, 0.15);
  EXPECT_EQ(second.input_s, 0);
  EXPECT_GE(second.processor_s, 0);
}

TEST(StepClocks, HaveNoMessagesWhereThereAreNoRanks) {
  StepClock clock(nullptr);
  clock.resume();
  spend(5);
  StepClock::Times times = clock.take();
  EXPECT_EQ(times.message_s, 0);
  EXPECT_GE(times.own_s, 0.005);
}

}  // namespace
}  // namespace sextant
