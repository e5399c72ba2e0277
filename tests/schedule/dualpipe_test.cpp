// DualPipe, DualPipeV and combined 1F1B against what is known of them: idle times, chunks alive, weight gradients that
// wait, and lengths of rows. A chunk's F and W take one second each and its whole backward two, so that a pair takes
// three.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <tuple>

#include "base/error.h"
#include "schedule/check.h"
#include "schedule/folded.h"
#include "schedule/from_csv.h"
#include "schedule/timing.h"

namespace sextant {
namespace {

struct Dual {
  const char* name;
  int ranks;
  // How many ranks lie between the entrance and this one, counted from the nearer entrance.
  int outer(int rank) const { return std::string_view(name) == "dualpipe" ? std::min(rank, ranks - 1 - rank) : rank; }
  int deep() const { return std::string_view(name) == "dualpipe" ? ranks / 2 : ranks; }  // ranks to the innermost
};

void for_each_dual(const std::function<void(const Dual&, const PipelineShape&)>& body) {
  for (Dual dual :
       {Dual{"dualpipe", 2}, Dual{"dualpipe", 4}, Dual{"dualpipe", 8}, Dual{"dualpipe", 16}, Dual{"dualpipev", 1},
        Dual{"dualpipev", 2}, Dual{"dualpipev", 3}, Dual{"dualpipev", 4}, Dual{"dualpipev", 8}})
    for (int more : {0, 2, 6, 20}) body(dual, {dual.ranks, 2, 2 * dual.ranks + more});
}

size_t units(std::span<const Action> actions) {
  size_t count = 0;
  for_each_unit(actions, [&](std::span<const Action>) { ++count; });
  return count;
}

TEST(DualPipe, EveryStageRunsEveryMicrobatchOnceForwardBackwardAndForItsWeights) {
  for_each_dual([](const Dual& dual, const PipelineShape& shape) {
    PipelineSchedule schedule = make_schedule(dual.name, shape);
    EXPECT_NO_THROW(check(schedule)) << dual.name << " " << shape.ranks << " " << shape.microbatches;
    std::set<std::tuple<RegionKind, int, int>> seen;
    for (int rank = 0; rank < shape.ranks; ++rank)
      for (const Action& a : schedule.ranks[static_cast<size_t>(rank)])
        EXPECT_TRUE(seen.emplace(a.region, stage_of(shape, schedule.placement, rank, a.chunk), a.microbatch).second)
            << name_of(a);
    // The two copies share the microbatches, so a stage of each copy sees half of them.
    bool copies = std::string_view(dual.name) == "dualpipe";
    EXPECT_EQ(seen.size(), static_cast<size_t>(3 * 2 * shape.ranks * shape.microbatches / (copies ? 2 : 1)));
  });
}

// (P/2 − 1)(FB + B − 3W) and (P − 1)(FB + B − 3W), whatever the number of microbatches, on every rank.
TEST(DualPipe, IdleTimesAreTheFormulas) {
  std::map<std::pair<std::string, int>, double> known{{{"dualpipe", 4}, 2},   {{"dualpipe", 8}, 6},
                                                      {{"dualpipe", 16}, 14}, {{"dualpipev", 2}, 2},
                                                      {{"dualpipev", 4}, 6},  {{"dualpipev", 8}, 14}};
  for_each_dual([&](const Dual& dual, const PipelineShape& shape) {
    TimedSchedule run = simulate_schedule(make_schedule(dual.name, shape), uniform_durations(shape, {1, 1, 1}));
    double end = run.makespan(), formula = (dual.deep() - 1) * (3 + 2 - 3);
    if (auto at = known.find({dual.name, dual.ranks}); at != known.end()) {
      EXPECT_EQ(formula, at->second);
    }
    double work = 3 * 2.0 * shape.microbatches / (std::string_view(dual.name) == "dualpipe" ? 2 : 1);
    for (int rank = 0; rank < shape.ranks; ++rank) {
      EXPECT_DOUBLE_EQ(end - work, formula) << dual.name << " " << shape.ranks << " " << shape.microbatches;
      EXPECT_LE(run.bubble(rank), formula) << rank;  // within its own span; the rest is before and after
    }
  });
}

// With pairs of two and a half seconds the step falls from 206 to 179 for 8 ranks and 32 microbatches: what overlaps is
// the gain, not the bubble, and idle times then differ by rank, from 7.5 to 10.5.
TEST(DualPipe, WhatPairsHideIsTheGain) {
  PipelineShape shape{8, 2, 32};
  PipelineSchedule schedule = make_schedule("dualpipev", shape);
  Durations durations = uniform_durations(shape, {1, 1, 1});
  EXPECT_DOUBLE_EQ(simulate_schedule(schedule, durations).makespan(), 206);
  durations.pair_saves = 0.5;
  TimedSchedule faster = simulate_schedule(schedule, durations);
  EXPECT_DOUBLE_EQ(faster.makespan(), 179);
  std::vector<double> idle;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    double busy = 0;
    for_each_unit(schedule.ranks[static_cast<size_t>(rank)], [&](std::span<const Action> unit) {
      busy += static_cast<double>(unit.size()) - (is_pair(unit) ? 0.5 : 0);
    });
    idle.push_back(faster.makespan() - busy);
  }
  EXPECT_DOUBLE_EQ(std::ranges::min(idle), 7.5);
  EXPECT_DOUBLE_EQ(std::ranges::max(idle), 10.5);
}

// From the start of a forward to the end of its backward P + 1 chunks of DualPipe (a chunk is a stage of L/P layers)
// and 2P + 1 of DualPipeV (of L/2P) are alive at most, on every rank; r' + 1 weight gradients wait at most.
TEST(DualPipe, ChunksAliveAndWaitingWeightGradients) {
  for_each_dual([](const Dual& dual, const PipelineShape& shape) {
    PipelineSchedule schedule = make_schedule(dual.name, shape);
    for (int rank = 0; rank < shape.ranks; ++rank) {
      int alive = 0, most_alive = 0, waiting = 0, most_waiting = 0;
      for_each_unit(schedule.ranks[static_cast<size_t>(rank)], [&](std::span<const Action> unit) {
        auto count = [&](RegionKind kind) { return static_cast<int>(std::ranges::count(unit, kind, &Action::region)); };
        most_alive = std::max(most_alive, alive += count(RegionKind::forward));
        alive -= count(RegionKind::backward);
        waiting += count(RegionKind::backward) - count(RegionKind::weight);
        most_waiting = std::max(most_waiting, waiting);
      });
      EXPECT_EQ(most_alive, 2 * dual.deep() + 1) << dual.name << " " << shape.ranks << " rank " << rank;
      EXPECT_EQ(most_waiting, dual.outer(rank) + 1) << dual.name << " " << shape.ranks << " rank " << rank;
    }
  });
}

TEST(DualPipe, RowLengthsOfFourRanksAndTenMicrobatches) {
  PipelineSchedule schedule = make_schedule("dualpipev", {4, 2, 10});
  std::vector<size_t> lengths;
  for (const auto& actions : schedule.ranks) lengths.push_back(units(actions));
  EXPECT_EQ(lengths, (std::vector<size_t>{38, 36, 34, 33}));
}

TEST(DualPipe, TooFewMicrobatchesAndOddCountsAreRefusedWithTheReason) {
  auto refusal = [](const char* name, const PipelineShape& shape) -> std::string {
    try {
      make_schedule(name, shape);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(refusal("dualpipev", {4, 2, 7}).find("at least twice as many microbatches as ranks"), std::string::npos);
  EXPECT_NE(refusal("dualpipev", {4, 1, 8}).find("exactly two chunks"), std::string::npos);
  EXPECT_NE(refusal("dualpipe", {3, 2, 8}).find("an even number of ranks"), std::string::npos);
  EXPECT_NE(refusal("dualpipe", {4, 2, 9}).find("an even number of microbatches"), std::string::npos);
  EXPECT_NE(refusal("dualpipe", {4, 2, 6}).find("at least twice as many as ranks"), std::string::npos);
  EXPECT_EQ(refusal("dualpipev", {4, 2, 8}) + refusal("dualpipe", {4, 2, 8}), "");
}

// Ranks that hold the same two stages run one program: a V over half of the ranks, whose microbatches change copies
// where it turns. That is DualPipeV's order.
TEST(DualPipe, FoldsToTheScheduleOfItsPrograms) {
  for (int ranks : {2, 4, 8}) {
    PipelineSchedule both = make_schedule("dualpipe", {ranks, 2, 3 * ranks + 2});
    PipelineSchedule half = folded(both);
    EXPECT_EQ(half.placement, StagePlacement::crossed_v);
    EXPECT_EQ(half.shape, (PipelineShape{ranks / 2, 2, (3 * ranks + 2) / 2}));
    EXPECT_EQ(half.ranks, make_schedule("dualpipev", half.shape).ranks);
    EXPECT_EQ(unfolded(half), both);
    EXPECT_EQ(unfolded_shape(half), both.shape);
    EXPECT_NO_THROW(check(half));
  }
  PipelineSchedule v = make_schedule("dualpipev", {2, 2, 8});
  EXPECT_EQ(unfolded(v), v);
}

// Different orders of actions on two ranks that hold the same stages have no program.
TEST(DualPipe, UnlikeCopiesAreRefusedWithTheActions) {
  PipelineSchedule both = make_schedule("dualpipe", {2, 2, 4});
  std::vector<Action>& last = both.ranks[1];
  std::swap(last[last.size() - 1], last[last.size() - 2]);
  try {
    folded(both, "own.csv");
    FAIL();
  } catch (const UserError& error) {
    std::string text = error.what();
    for (const char* part : {"own.csv", "rank 1 runs ", "rank 0 does the same for the other copy", "same order"})
      EXPECT_NE(text.find(part), std::string::npos) << text;
  }
}

TEST(DualPipe, SurvivesCsv) {
  for (const char* name : {"dualpipe", "dualpipev"}) {
    PipelineSchedule schedule = make_schedule(name, {4, 2, 10});
    PipelineSchedule read = schedule_from_csv(csv_text(schedule));
    read.name = schedule.name;
    EXPECT_EQ(read, schedule) << name;
  }
  EXPECT_NE(csv_text(make_schedule("dualpipev", {1, 2, 2})).find("F1.1+B0.0+W0.0"), std::string::npos);
}

// Pairs one after the other, none waiting for another rank: the step is as long as 1F1B's, filling and draining of a
// whole forward and backward each way, and pairs that save something save it for every microbatch but the first.
TEST(Combined1F1B, TakesAsLongAs1F1BAndGainsWhatPairsHide) {
  for (int p : {1, 2, 3, 4, 8})
    for (int m : {2 * p, 2 * p + 3, 4 * p}) {
      PipelineShape shape{p, 1, m};
      Durations durations = uniform_durations(shape);
      PipelineSchedule schedule = make_schedule("combined-1f1b", shape);
      EXPECT_NO_THROW(check(schedule));
      double apart = simulate_schedule(make_schedule("1f1b", shape), durations).makespan();
      EXPECT_DOUBLE_EQ(simulate_schedule(schedule, durations).makespan(), apart) << p << " " << m;
      durations.pair_saves = 1;
      EXPECT_LT(simulate_schedule(schedule, durations).makespan(), apart - (m - 2 * p)) << p << " " << m;
    }
}

TEST(Combined1F1B, TwiceAsManyMicrobatchesAreInFlight) {
  for (int p : {1, 2, 4})
    for (int rank = 0; rank < p; ++rank)
      EXPECT_EQ(in_flight(make_schedule("combined-1f1b", {p, 1, 4 * p}), rank, 0).forward_to_backward, 2 * (p - rank));
}

TEST(Combined1F1B, OneRankPairsEveryForwardButTheFirst) {
  EXPECT_EQ(csv_text(make_schedule("combined-1f1b", {1, 1, 3})), "F0,F1+B0,F2+B1,B2\n");
  EXPECT_EQ(csv_text(make_schedule("combined-1f1b", {1, 1, 1})), "F0,B0\n");
}

}  // namespace
}  // namespace sextant
