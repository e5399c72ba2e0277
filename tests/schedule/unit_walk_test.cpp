#include "schedule/unit_walk.h"

#include <gtest/gtest.h>

#include "schedule/timing.h"

namespace sextant {
namespace {

struct UnitCase {
  const char* schedule;
  PipelineShape shape;
};

class UnitsAsWholes : public testing::TestWithParam<UnitCase> {};

// Where a unit needs all at its start and hands on all at its end, both walks are of the same thing.
TEST_P(UnitsAsWholes, EndAsSimulated) {
  constexpr double kForward = 2, kBackward = 3, kWeight = 4, kMessage = 0.5;
  PipelineSchedule schedule = make_schedule(GetParam().schedule, GetParam().shape);
  Durations durations =
      uniform_durations(schedule.shape, {.forward = kForward, .backward = kBackward, .weight = kWeight});
  durations.message = kMessage;
  TimedSchedule timed = simulate_schedule(schedule, durations);
  std::vector<double> ends = earliest_ends(schedule, [&](int, std::span<const Action> unit) {
    UnitTimes times;
    for (const Action& action : unit)
      times.seconds += action.region == RegionKind::forward    ? kForward
                       : action.region == RegionKind::backward ? kBackward
                                                               : kWeight;
    if (!schedule.defers_weights() && unit.back().region == RegionKind::backward) times.seconds += kWeight;
    times.forward_arrives = times.backward_arrives = times.seconds + kMessage;
    times.forward_sent_behind = true;
    return times;
  });
  for (size_t rank = 0; rank < ends.size(); ++rank) EXPECT_DOUBLE_EQ(ends[rank], timed.ranks[rank].back().end) << rank;
}

INSTANTIATE_TEST_SUITE_P(Schedules, UnitsAsWholes,
                         testing::Values(UnitCase{"1f1b", {4, 1, 6}}, UnitCase{"interleaved", {2, 3, 4}},
                                         UnitCase{"zbv", {3, 2, 6}}, UnitCase{"combined-1f1b", {1, 1, 4}},
                                         UnitCase{"combined-1f1b", {3, 1, 7}}, UnitCase{"dualpipev", {4, 2, 10}}),
                         [](const auto& info) {
                           std::string name = info.param.schedule;
                           std::erase(name, '-');
                           return name + std::to_string(info.param.shape.ranks);
                         });

// Two ranks, two microbatches, by hand: what the backward of a pair makes has arrived a second before the pair ends.
TEST(UnitWalk, HandsOnBeforeAUnitEnds) {
  PipelineSchedule schedule = make_schedule("combined-1f1b", {2, 1, 2});
  std::vector<double> ends = earliest_ends(schedule, [](int, std::span<const Action> unit) -> UnitTimes {
    if (unit.size() == 2)
      return {.seconds = 4, .forward_arrives = 3, .backward_arrives = 3, .forward_sent_behind = true};
    bool forward = unit[0].region == RegionKind::forward;
    return {.seconds = forward ? 2.0 : 3.0, .forward_arrives = 2.5, .backward_arrives = 3};
  });
  // Rank 0: F0 0–2, F1 2–4. Rank 1: F0 2.5–4.5, F1 with B0 4.5–8.5, B1 8.5–11.5. Rank 0: B0 7.5–10.5, B1 11.5–14.5.
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_DOUBLE_EQ(ends[1], 11.5);
  EXPECT_DOUBLE_EQ(ends[0], 14.5);
}

}  // namespace
}  // namespace sextant
