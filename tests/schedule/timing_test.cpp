#include "schedule/timing.h"

#include <gtest/gtest.h>

#include "schedule/from_csv.h"

namespace sextant {
namespace {

// Two ranks, one microbatch, by hand: F 0–2, message, F 3–5 on rank 1, B and W 5–12, message, B and W 13–20.
TEST(Timing, MessagesAndUnsplitBackwards) {
  PipelineSchedule schedule = make_schedule("1f1b", {2, 1, 1});
  Durations durations = uniform_durations(schedule.shape, {.forward = 2, .backward = 3, .weight = 4});
  durations.message = 1;
  TimedSchedule run = simulate_schedule(schedule, durations);
  ASSERT_EQ(run.ranks[0].size(), 2u);
  EXPECT_EQ(run.ranks[1][0].start, 3);
  EXPECT_EQ(run.ranks[1][1].end, 12);
  EXPECT_EQ(run.ranks[0][1].start, 13);
  EXPECT_EQ(run.makespan(), 20);
  EXPECT_EQ(run.span(1), 9);
  EXPECT_EQ(run.bubble(0), 11);
  EXPECT_EQ(run.bubble(1), 0);
  EXPECT_EQ(run.max_bubble(), 11);
  EXPECT_DOUBLE_EQ(run.bubble_fraction(), 11.0 / 20);
}

TEST(Timing, StagesMayDifferAndWRunsApart) {
  PipelineSchedule schedule = schedule_from_csv("F0,B0,W0\nF0,B0,W0\n");
  TimedSchedule run = simulate_schedule(schedule, {.forward = {1, 10}, .backward = {2, 20}, .weight = {3, 30}});
  EXPECT_EQ(run.ranks[0][1].start, 31);  // 1 + 10 + 20: it does not wait for rank 1's W
  EXPECT_EQ(run.ranks[0][2].end, 36);
  EXPECT_EQ(run.ranks[1][2].end, 61);
}

TEST(Timing, AVTurnsWithoutAMessage) {
  PipelineSchedule schedule = schedule_from_csv("placement,v\nF0.0,F1.0,B1.0,B0.0\nF0.0,F1.0,B1.0,B0.0\n");
  Durations durations = uniform_durations(schedule.shape);
  durations.message = 10;
  TimedSchedule run = simulate_schedule(schedule, durations);
  EXPECT_EQ(run.ranks[1][0].start, 11);
  EXPECT_EQ(run.ranks[1][1].start, 12);  // the turn is on rank 1
  EXPECT_EQ(run.ranks[0][1].start, 23);
  EXPECT_EQ(run.ranks[0][2].start, 24);  // the last stage starts its backward at once
}

}  // namespace
}  // namespace sextant
