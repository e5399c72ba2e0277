#include "schedule/from_csv.h"
#include "schedule/schedules.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace sextant {
namespace {

TEST(ScheduleCsv, EveryScheduleReadsBackAsItself) {
  for (std::string_view name : schedule_names()) {
    bool two_chunks = find_schedule(name)->chunks.least == 2;
    PipelineSchedule schedule = make_schedule(name, {4, two_chunks ? 2 : 1, 8});
    PipelineSchedule read = schedule_from_csv(csv_text(schedule));
    read.name = schedule.name;
    EXPECT_EQ(read, schedule) << name;
  }
}

TEST(ScheduleCsv, TextIsOneRowARank) {
  EXPECT_EQ(csv_text(make_schedule("1f1b", {2, 1, 2})), "F0,F1,B0,B1\nF0,B0,F1,B1\n");
  EXPECT_EQ(csv_text(make_schedule("zbv", {1, 2, 1})), "placement,v\nF0.0,F1.0,B1.0,W1.0,B0.0,W0.0\n");
}

TEST(ScheduleCsv, SpreadsheetHabitsArePassedOver) {
  PipelineSchedule plain = schedule_from_csv("F0,F1,B0,B1\nF0,B0,F1,B1\n");
  EXPECT_EQ(schedule_from_csv("\xEF\xBB\xBF# mine\r\nplacement,loop\r\nF0, F1,,,B0,B1\r\n\r\n,F0,B0,F1,B1"), plain);
  EXPECT_EQ(schedule_from_csv("F0.0,F0.1,B0.0,B0.1\nF0,B0,F1,B1\n"), plain);
}

void expect_refused(std::string_view csv, std::string_view part) {
  try {
    schedule_from_csv(csv, "own.csv");
    ADD_FAILURE() << "took " << csv;
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(ScheduleCsv, BadTextIsRefusedWithItsLine) {
  expect_refused("", "own.csv:1");
  expect_refused("\n#\n", "no actions");
  expect_refused("F0,B0\nF0,X0\n", "own.csv:2: cell \"X0\" is not an action");
  expect_refused("F0,F\n", "cell \"F\"");
  expect_refused("F0,F-1\n", "cell \"F-1\"");
  expect_refused("F0,F1.\n", "cell \"F1.\"");
  expect_refused("F0,F0.1.2\n", "cell \"F0.1.2\"");
  expect_refused("F0,F99999999999999999999\n", "is not an action");
  expect_refused("placement,w\nF0,B0\n", "loop, v or both-ways");
  expect_refused("F0,F1+,B0,B1\n", "own.csv:1: cell \"F1+\" is not an action");
  expect_refused("F0,+B0\n", "cell \"+B0\"");
  expect_refused("F0,B0\nplacement,v\n", "own.csv:2");
}

TEST(ScheduleCsv, PlusJoinsActionsToAUnit) {
  PipelineSchedule schedule = schedule_from_csv("F0,F1 + B0,B1\n");
  EXPECT_EQ(schedule.ranks[0][1], (Action{RegionKind::forward, 0, 1, true}));
  EXPECT_EQ(schedule.ranks[0][2], (Action{RegionKind::backward, 0, 0}));
  EXPECT_EQ(csv_text(schedule), "F0,F1+B0,B1\n");
}

TEST(ScheduleCsv, HugeIndicesAllocateNothing) {
  expect_refused("F0,B0,F999999.999999\n", "own.csv");
  expect_refused("F999999.0,B999999.0\n", "own.csv");
}

}  // namespace
}  // namespace sextant
