// The schedules against what their papers promise, for every shape up to 8 ranks, 32 microbatches and 4 chunks. One
// chunk's F, B and W take one second each; where B is not split it takes two.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "base/error.h"
#include "schedule/check.h"
#include "schedule/schedules.h"
#include "schedule/timing.h"

namespace sextant {
namespace {

constexpr int kMostRanks = 8, kMostMicrobatches = 32, kMostChunks = 4;

TimedSchedule timed(std::string_view name, const PipelineShape& shape) {
  return simulate_schedule(make_schedule(name, shape), uniform_durations(shape));
}

void for_each_shape(const std::function<void(int p, int m)>& body) {
  for (int p = 2; p <= kMostRanks; ++p)
    for (int m = 1; m <= kMostMicrobatches; ++m) body(p, m);
}

bool defined(std::string_view name, const PipelineShape& shape) {
  if (name == "interleaved") return shape.chunks >= 2 && shape.microbatches % shape.ranks == 0;
  if (name == "breadth-first") return true;
  bool fills = shape.chunks == 2 && shape.microbatches >= 2 * shape.ranks;
  if (name == "dualpipev") return fills;
  if (name == "dualpipe") return fills && shape.ranks % 2 == 0 && shape.microbatches % 2 == 0;
  return shape.chunks == (name == "zbv" ? 2 : 1);
}

TEST(Schedules, AreCompleteAndEndWhereDefinedAndAreRefusedByNameElsewhere) {
  int made = 0, refused = 0;
  for (std::string_view name : schedule_names())
    for (int chunks = 1; chunks <= kMostChunks; ++chunks)
      for_each_shape([&](int p, int m) {
        PipelineShape shape{p, chunks, m};
        if (defined(name, shape)) {
          EXPECT_NO_THROW(check(make_schedule(name, shape))) << name << " " << p << " " << chunks << " " << m;
          ++made;
          return;
        }
        try {
          make_schedule(name, shape);
          ADD_FAILURE() << name << " took " << p << " " << chunks << " " << m;
        } catch (const UserError& error) {
          EXPECT_NE(std::string(error.what()).find(name), std::string::npos);
          ++refused;
        }
      });
  EXPECT_GT(made, 1900);
  EXPECT_GT(refused, 3000);
}

// The table is right about what the generators write.
TEST(Schedules, AreWhatTheTableSays) {
  for (const ScheduleDef& def : kSchedules) {
    PipelineSchedule schedule = make_schedule(def.name, {4, def.chunks.least, 8});
    EXPECT_EQ(schedule.defers_weights(), def.defers_weights) << def.name;
    EXPECT_EQ(has_pairs(schedule), def.pairs) << def.name;
    EXPECT_EQ(word_of(def.kind), def.name);
  }
  EXPECT_EQ(value_of_word<ScheduleKind>("csv"), ScheduleKind::from_file);
}

TEST(Schedules, OneRankNeedsNoPipeline) {
  for (std::string_view name : schedule_names())
    for (int m : {1, 5}) {
      if (name == "dualpipe") continue;  // needs two
      PipelineShape shape{1, name == "zbv" || name == "interleaved" || name == "dualpipev" ? 2 : 1, m};
      if (!defined(name, shape)) continue;
      EXPECT_NO_THROW(check(make_schedule(name, shape))) << name;
      EXPECT_EQ(timed(name, shape).max_bubble(), 0) << name;
    }
}

TEST(Schedules, UnknownNamesAndImpossibleShapesAreRefused) {
  EXPECT_THROW(make_schedule("2f2b", {4, 1, 8}), UserError);
  EXPECT_THROW(make_schedule("1f1b", {0, 1, 8}), UserError);
  EXPECT_THROW(make_schedule("1f1b", {4, 1, -1}), UserError);
  EXPECT_THROW(make_schedule("1f1b", {2'000'000'000, 1, 2'000'000'000}), UserError);
}

// All F then all B: the first rank idles while the pipeline fills and drains, p − 1 stages each way.
TEST(GPipe, BubbleIsThatOf1F1BAndEveryMicrobatchIsInFlight) {
  for_each_shape([](int p, int m) {
    EXPECT_DOUBLE_EQ(timed("gpipe", {p, 1, m}).max_bubble(), 3 * (p - 1)) << p << " " << m;
    EXPECT_EQ(in_flight(make_schedule("gpipe", {p, 1, m}), p - 1, 0).forward_to_backward, m);
  });
}

// Rank i starts i forwards late and ends i backwards early, so it idles (p − 1 − i)(F + B + W) within its own span of
// (m + p − 1 − i)(F + B + W). The textbook's (p − 1)/(m + p − 1) is rank 0, whose span is the whole step, and the
// largest.
TEST(OneFOneB, BubbleIsTheTextbookFractionForEveryM) {
  for_each_shape([](int p, int m) {
    TimedSchedule run = timed("1f1b", {p, 1, m});
    for (int i = 0; i < p; ++i) {
      EXPECT_DOUBLE_EQ(run.bubble(i), 3 * (p - 1 - i)) << p << " " << m << " rank " << i;
      EXPECT_DOUBLE_EQ(run.span(i), 3 * (m + p - 1 - i)) << p << " " << m << " rank " << i;
    }
    EXPECT_DOUBLE_EQ(run.bubble_fraction(), (p - 1.0) / (m + p - 1.0)) << p << " " << m;
  });
}

TEST(OneFOneB, MicrobatchesInFlight) {
  for_each_shape([](int p, int m) {
    PipelineSchedule schedule = make_schedule("1f1b", {p, 1, m});
    for (int i = 0; i < p; ++i) {
      InFlight counts = in_flight(schedule, i, 0);
      EXPECT_EQ(counts.forward_to_backward, std::min(m, p - i));
      EXPECT_EQ(counts.forward_to_weight, std::min(m, p - i));
      EXPECT_EQ(counts.backward_to_weight, 0);
    }
  });
}

// A chunk of v takes one second here where 1F1B's stage, all v chunks of a rank, takes v: 1F1B's bubble of 3(p − 1)v
// seconds divided by v.
TEST(Interleaved, BubbleIsThatOf1F1BDividedByTheChunks) {
  for (int chunks = 2; chunks <= kMostChunks; ++chunks)
    for_each_shape([&](int p, int m) {
      if (m % p != 0) return;
      PipelineShape one{p, 1, m};
      double stage = chunks;
      double whole =
          simulate_schedule(make_schedule("1f1b", one), uniform_durations(one, {stage, stage, stage})).max_bubble();
      EXPECT_DOUBLE_EQ(timed("interleaved", {p, chunks, m}).max_bubble(), whole / chunks)
          << p << " " << chunks << " " << m;
    });
}

// The same, once there are microbatches enough to fill the ranks; before, every further chunk waits for the first
// microbatch to come round, twice.
TEST(BreadthFirst, BubbleIsThatOf1F1BDividedByTheChunksFromAsManyMicrobatchesAsRanksOn) {
  for (int chunks = 1; chunks <= kMostChunks; ++chunks)
    for_each_shape([&](int p, int m) {
      double expected = 3 * (p - 1) + 3 * (chunks - 1) * std::max(0, p - m);
      EXPECT_DOUBLE_EQ(timed("breadth-first", {p, chunks, m}).max_bubble(), expected) << p << " " << chunks << " " << m;
    });
}

// A third from m = p on already. With fewer there is too little W to fill the gaps: one second less for each
// microbatch.
TEST(ZeroBubbleH1, BubbleIsAThirdOf1F1BsFromAsManyMicrobatchesAsRanksOn) {
  for_each_shape([](int p, int m) {
    double third = timed("1f1b", {p, 1, m}).max_bubble() / 3;
    EXPECT_DOUBLE_EQ(timed("zb-h1", {p, 1, m}).max_bubble(), third + std::max(0, p - m)) << p << " " << m;
  });
}

TEST(ZeroBubbleH1, NoMoreMicrobatchesWaitForTheirBackwardThanIn1F1B) {
  for_each_shape([](int p, int m) {
    PipelineSchedule schedule = make_schedule("zb-h1", {p, 1, m});
    for (int i = 0; i < p; ++i) {
      InFlight counts = in_flight(schedule, i, 0);
      EXPECT_EQ(counts.forward_to_backward, std::min(m, p - i)) << p << " " << m << " rank " << i;
      // Activations that W still needs are kept longer: one more than 1F1B's first rank has.
      EXPECT_LE(counts.forward_to_weight, p + 1) << p << " " << m << " rank " << i;
      EXPECT_LE(counts.backward_to_weight, i + 1) << p << " " << m << " rank " << i;
    }
  });
}

// Zero from m = 2p − 1 on; before, each microbatch that is missing leaves two seconds.
TEST(ZeroBubbleV, NoRankIdlesFromTwiceTheRanksOn) {
  for_each_shape([](int p, int m) {
    EXPECT_DOUBLE_EQ(timed("zbv", {p, 2, m}).max_bubble(), 2 * std::max(0, 2 * p - 1 - m)) << p << " " << m;
  });
}

// The first rank of 1F1B keeps p microbatches of its whole part: 2p of halves. Here both chunks share that, even until
// W.
TEST(ZeroBubbleV, NoRankHoldsMoreThanTheFirstRankOf1F1B) {
  for_each_shape([](int p, int m) {
    PipelineSchedule schedule = make_schedule("zbv", {p, 2, m});
    for (int i = 0; i < p; ++i) {
      int held = 0, most = 0;
      for (const Action& action : schedule.ranks[static_cast<size_t>(i)]) {
        if (action.region == RegionKind::forward) most = std::max(most, ++held);
        if (action.region == RegionKind::weight) --held;
      }
      EXPECT_LE(most, 2 * p) << p << " " << m << " rank " << i;
    }
  });
}

}  // namespace
}  // namespace sextant
