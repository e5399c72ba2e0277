// Schedules that check refuses, and the counts that memory planning reads: against schedules small enough to count by
// hand.
#include "schedule/check.h"
#include "schedule/schedules.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "schedule/from_csv.h"
#include "schedule/timing.h"
#include "schedule/walk.h"

namespace sextant {
namespace {

std::string complaint(std::string_view csv) {
  try {
    schedule_from_csv(csv, "own.csv");
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

void expect_complaint(std::string_view csv, std::string_view part) {
  EXPECT_NE(complaint(csv).find(part), std::string::npos) << csv << " gave: " << complaint(csv);
}

TEST(Check, AcceptsAScheduleInOrder) {
  EXPECT_EQ(complaint("F0,F1,B0,B1\nF0,B0,F1,B1\n"), "");
}

TEST(Check, NamesWhatIsMissingDoubledOrOutOfOrder) {
  expect_complaint("F0,F1,B0,B1\nF0,B0,F1\n", "rank 1 lacks B 0 1");
  expect_complaint("F0,B0,F0\n", "rank 0 runs F 0 0 twice");
  expect_complaint("F1,F0,B0,B1\n", "rank 0 runs F 0 1 before F 0 0");
  expect_complaint("F0,F1,B1,B0\n", "rank 0 runs B 0 1 before B 0 0");
  expect_complaint("F0,F1,B0,B1,W1,W0\n", "rank 0 runs W 0 1 before W 0 0");
  expect_complaint("F0,B0,W0\nF0,B0\n", "rank 1 lacks W 0 0");
  expect_complaint("F0.0,F1.0,B1.0,B0.0\nF0.0,B0.0\n", "rank 1 lacks F 1 0");
}

TEST(Check, NamesTheRingOfADeadlock) {
  expect_complaint("B0,F0\n", "rank 0 waits at B 0 0 for F 0 0 of its own, which comes later");
  // Rank 0 wants a gradient before it sends the second microbatch, rank 1 the second microbatch before it sends a
  // gradient.
  expect_complaint("F0,B0,F1,B1\nF0,F1,B0,B1\n",
                   "rank 0 waits at B 0 0 for B 0 0 of rank 1, which waits at F 0 1 for F 0 1 of rank 0");
  // The middle rank only hands on; the ring is named through it.
  expect_complaint("F0,B0,F1,B1\nF0,F1,B0,B1\nF0,F1,B0,B1\n",
                   "rank 0 waits at B 0 0 for B 0 0 of rank 1, which waits at F 0 1 for F 0 1 of rank 0");
}

// A unit is one action, B and its own W, or F beside a B; and it starts when all that it needs is there.
TEST(Check, RefusesUnitsThatAreNone) {
  constexpr std::string_view kUnits = "one action, B and its own W, or F beside a B with or without that one's W";
  EXPECT_EQ(complaint("F0,F1+B0+W0,B1+W1\n"), "");
  expect_complaint("F0+F1,B0,B1\n", "rank 0 runs F 0 0 + F 0 1 as one");
  expect_complaint("F0+F1,B0,B1\n", kUnits);
  expect_complaint("F0,F1,B0+B1\n", kUnits);
  expect_complaint("F0,F1,B0,B1+W0,W1\n", kUnits);
  expect_complaint("F0,B0+F1,B1\n", kUnits);
  expect_complaint("F0,F1,B0,F2+W0,B1,W1,B2,W2\n", kUnits);
  expect_complaint("F0+B0\n", "rank 0 waits at F 0 0 + B 0 0 for F 0 0 of its own, which comes later");
  // Either could run alone, but each waits for the whole of the other.
  expect_complaint("F0,F1+B0,B1\nF0,F1+B0,B1\n", "rank 0 waits at F 0 1 + B 0 0 for B 0 0 of rank 1");
  PipelineSchedule open = make_schedule("gpipe", {1, 1, 2});
  open.ranks[0].back().with_next = true;
  EXPECT_THROW(check(open), UserError);
}

TEST(Check, RefusesActionsOutsideTheShape) {
  PipelineSchedule schedule = make_schedule("gpipe", {1, 1, 2});
  schedule.ranks[0][0].chunk = 1;
  EXPECT_THROW(check(schedule), UserError);
  schedule = make_schedule("gpipe", {1, 1, 2});
  schedule.ranks[0][0].microbatch = -1;
  EXPECT_THROW(check(schedule), UserError);
  schedule = make_schedule("gpipe", {1, 1, 2});
  schedule.ranks[0][0].region = RegionKind::update;
  EXPECT_THROW(check(schedule), UserError);
  schedule = make_schedule("gpipe", {2, 1, 2});
  schedule.ranks.pop_back();
  EXPECT_THROW(check(schedule), UserError);
}

TEST(InFlight, WindowsAreCountedFromStartToEnd) {
  PipelineSchedule schedule = schedule_from_csv("F0,F1,B0,F2,B1,W0,W1,B2,W2\n");
  InFlight counts = in_flight(schedule, 0, 0);
  EXPECT_EQ(counts.forward_to_backward, 2);  // 1 and 2, or 0 and 1
  EXPECT_EQ(counts.forward_to_weight, 3);    // all, at F 2
  EXPECT_EQ(counts.backward_to_weight, 2);   // 0 and 1, at B 1
}

// Of a pair both are there at once.
TEST(InFlight, APairHoldsBoth) {
  EXPECT_EQ(in_flight(schedule_from_csv("F0,B0,F1,B1\n"), 0, 0).forward_to_backward, 1);
  EXPECT_EQ(in_flight(schedule_from_csv("F0,F1+B0,B1\n"), 0, 0).forward_to_backward, 2);
  InFlight counts = in_flight(schedule_from_csv("F0,F1+B0+W0,B1,W1\n"), 0, 0);
  EXPECT_EQ(counts.forward_to_weight, 2);
  EXPECT_EQ(counts.backward_to_weight, 1);
}

TEST(InFlight, CountsOneChunkAtATime) {
  PipelineSchedule schedule = make_schedule("interleaved", {2, 2, 4});
  // Rank 0: F0.0 F0.1 F1.0 F1.1 F0.2 B1.0 …: its first chunk fills before the second's gradient is back.
  EXPECT_EQ(in_flight(schedule, 0, 0).forward_to_backward, 4);
  EXPECT_EQ(in_flight(schedule, 0, 1).forward_to_backward, 2);
}

// When each rank ends with so many slots; nothing if they lock up.
std::vector<double> ends_with(const PipelineSchedule& schedule, int slots) {
  ScheduleWalk done = walk(schedule, uniform_durations(schedule.shape), slots);
  std::vector<double> ends;
  for (size_t rank = 0; rank < done.ranks.size(); ++rank) {
    if (done.ranks[rank].size() < schedule.ranks[rank].size()) return {};
    ends.push_back(done.ranks[rank].back().end);
  }
  return ends;
}

TEST(GradientSlots, AreTheLeastThatCostNothing) {
  for (std::string_view name : schedule_names())
    for (int p : {2, 3, 4, 8})
      for (int m : {p, 2 * p, 3 * p}) {
        const ScheduleDef& def = *find_schedule(name);
        PipelineShape shape{p, def.chunks.allows(2) ? 2 : 1, m};
        if (!is_defined(def, shape)) continue;
        PipelineSchedule schedule = make_schedule(name, shape);
        int slots = gradient_slots(schedule);
        ASSERT_GE(slots, 1);
        ASSERT_LE(slots, m);
        std::vector<double> free = ends_with(schedule, kUnlimitedSlots);
        EXPECT_EQ(ends_with(schedule, slots), free) << name << " " << p << " " << m;
        EXPECT_TRUE(slots == 1 || ends_with(schedule, slots - 1) != free) << name << " " << p << " " << m;
      }
}

TEST(GradientSlots, OneSlotWhereEachGradientIsTakenAtOnce) {
  EXPECT_EQ(gradient_slots(make_schedule("gpipe", {4, 1, 8})), 1);
}

// Rank 1 runs B 1 2 before B 0 0. With one slot B 1 2 waits until rank 0 has started B 1 1, which waits for the slot
// that B 0 0 of rank 1 would free.
TEST(GradientSlots, TooFewLockUp) {
  PipelineSchedule ring = make_schedule("breadth-first", {2, 2, 3});
  EXPECT_TRUE(ends_with(ring, 1).empty());
  EXPECT_FALSE(ends_with(ring, 2).empty());
  EXPECT_EQ(gradient_slots(ring), 2);
}

}  // namespace
}  // namespace sextant
