// Steps within a time, by hand and by counting; and how long a step is taken to be.
#include "propose/step_budget.h"

#include <gtest/gtest.h>

#include "config/load.h"
#include "propose/step_timer.h"

namespace sextant {
namespace {

// Seconds of the steps and of the measurements of the loss, counted one by one.
double seconds_of(int64_t steps, const StepCost& cost, int64_t eval_every) {
  double seconds = 0;
  for (int64_t step = 1; step <= steps; ++step) {
    seconds += cost.step_s;
    if (eval_every > 0 && (step % eval_every == 0 || step == steps)) seconds += cost.evaluation_s;
  }
  return seconds;
}

TEST(StepBudget, IsKeptAndUsed) {
  for (double budget : {10.0, 61.0, 600.0})
    for (double step_s : {0.013, 0.4, 2.5})
      for (double evaluation_s : {0.0, 1.5})
        for (int64_t eval_every : {int64_t{0}, int64_t{10}, int64_t{100}}) {
          StepCost cost{step_s, evaluation_s};
          int64_t steps = steps_within(budget, cost, eval_every);
          EXPECT_LE(seconds_of(steps, cost, eval_every), budget + 1e-6);
          // One more measurement of the loss may not fit any more.
          EXPECT_GT(seconds_of(steps + 1, cost, eval_every) + evaluation_s, budget - 1e-6);
        }
}

TEST(StepBudget, IsAtLeastAStep) {
  EXPECT_EQ(steps_within(1, {.step_s = 60}, 0), 1);
  EXPECT_EQ(steps_within(-5, {.step_s = 1}, 0), 1);
}

TEST(StepBudget, EvaluationsAreForwardPasses) {
  EXPECT_DOUBLE_EQ(evaluation_seconds(0.3, 64, 8), 0.8);
}

TEST(StepBudget, SchedulesKeepTheirProportion) {
  EXPECT_EQ(in_proportion(50, 1000, 200), 10);
  EXPECT_EQ(in_proportion(50, 1000, 3), 1);
  EXPECT_EQ(in_proportion(0, 1000, 200), 0);
  EXPECT_EQ(in_proportion(100, 100, 7), 7);
}

// Both rounded up would be longer than the run, whose config.toml would then be refused at a resume.
TEST(StepBudget, WarmUpAndDecayFitTogether) {
  for (int64_t to = 1; to <= 200; ++to)
    for (ScheduleSteps given : {ScheduleSteps{5, 5}, {1, 9}, {9, 1}, {0, 10}, {3, 4}}) {
      ScheduleSteps fitted = fit_schedule(given, 10, to);
      EXPECT_LE(fitted.warmup + fitted.decay, to);
      EXPECT_GE(fitted.warmup, 0);
      EXPECT_GE(fitted.decay, 1);
    }
  ScheduleSteps same = fit_schedule({.warmup = 3, .decay = 4}, 10, 10);
  EXPECT_EQ(same.warmup, 3);
  EXPECT_EQ(same.decay, 4);
  EXPECT_EQ(fit_schedule({.warmup = 10, .decay = 0}, 10, 7).warmup, 7);
}

TEST(StepTimer, MeasuresWhatIsQuickAndEstimatesTheRest) {
  int measured = 0;
  StepTimer timer([&](const RunConfig& run) {
    ++measured;
    return static_cast<double>(run.batch.sequences * run.batch.seq) * 1e-5;
  });
  RunConfig run = parse_config("[model]\narchitecture=\"llama\"\nlayers=2\nhidden=64\nheads=2\nvocab=512\n", "a model");
  run.batch = {.sequences = 8, .microbatch = 8, .seq = 256};
  EXPECT_NEAR(timer.seconds(run, 2e5), 2048e-5, 1e-12);
  int before = measured;
  double large = timer.seconds(run, 2e9);
  EXPECT_EQ(measured, before);
  EXPECT_NEAR(large, 2048e-5 * 1e4, 2048e-5 * 10);
}

}  // namespace
}  // namespace sextant
