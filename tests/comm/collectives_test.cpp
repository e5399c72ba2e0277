// Collectives over threads: the checks of collective_checks.h, lanes side by side, and what a warm run allocates.
#include "comm/collectives.h"

#include <gtest/gtest.h>

#include <atomic>

#include "comm/allocation_count.h"
#include "comm/collective_checks.h"
#include "comm/run_ranks.h"

namespace sextant {
namespace {

constexpr std::chrono::seconds kTimeout{20};

void expect_all_well(const std::vector<RankEnd>& ends) {
  for (size_t rank = 0; rank < ends.size(); ++rank) EXPECT_EQ(ends[rank].error, "") << "rank " << rank;
}

TEST(Collectives, PartsCoverTheWholeInOrder) {
  for (int64_t count : {0, 1, 7, 8, 1000})
    for (int parts : {1, 2, 3, 8}) {
      int64_t next = 0;
      for (int index = 0; index < parts; ++index) {
        Part part = part_of(count, parts, index);
        EXPECT_EQ(part.first, next);
        EXPECT_LE(part_of(count, parts, 0).count - part.count, 1);
        EXPECT_GE(part_of(count, parts, 0).count, part.count);
        next += part.count;
      }
      EXPECT_EQ(next, count);
    }
}

TEST(Collectives, HoldOnThreads) {
  for (int ranks : {1, 2, 3, 4, 5, 8}) {
    SCOPED_TRACE(fmt::format("{} ranks", ranks));
    ThreadHub hub(ranks, kTimeout);
    expect_all_well(run_ranks(hub, ranks, checks::check_collectives));
  }
}

TEST(Collectives, TheOrderOfSummingMatters) {
  Group forwards{{0, 1, 2}}, backwards{{2, 1, 0}};
  EXPECT_NE(checks::combined<float>(forwards, 100, checks::wild_numbers<float>, Reduction::sum),
            checks::combined<float>(backwards, 100, checks::wild_numbers<float>, Reduction::sum))
      << "else the checks of order could not fail";
}

TEST(Collectives, AReductionOfAnUnknownTypeIsABug) {
  ThreadHub hub(2, kTimeout);
  for (const RankEnd& end : run_ranks(hub, 2, [](Transport& transport) {
         std::vector<uint16_t> data(8), scratch(8);
         Channel channel{transport};
         all_reduce(channel, group_of_ranks({0, 1}, transport.rank()),
                    {checks::bytes_of(data), checks::bytes_of(scratch), DType::u16, Reduction::sum});
       }))
    EXPECT_NE(end.error.find("no reduction in u16"), std::string::npos) << end.error;
}

TEST(Collectives, LanesRunSideBySide) {
  constexpr int kRanks = 4, kLanes = 3, kRounds = 60;
  ThreadHub hub(kRanks, kTimeout);
  expect_all_well(run_ranks(hub, kRanks, [&](Transport& transport) {
    std::atomic<int> wrong{0};
    std::vector<std::thread> lanes;
    for (int lane = 0; lane < kLanes; ++lane)
      lanes.emplace_back([&, lane] {
        Channel channel{transport, 10 + lane};
        Group group = group_of_ranks({0, 1, 2, 3}, transport.rank());
        std::vector<float> data(257), scratch(257);
        for (int round = 0; round < kRounds; ++round) {
          std::fill(data.begin(), data.end(), static_cast<float>(transport.rank() + 10 * lane + round));
          all_reduce(channel, group, {checks::bytes_of(data), checks::bytes_of(scratch), DType::f32, Reduction::sum});
          for (float value : data) wrong += value != static_cast<float>(6 + 4 * (10 * lane + round));
        }
      });
    for (std::thread& lane : lanes) lane.join();
    checks::require(wrong == 0, "{} sums are wrong", wrong.load());
  }));
}

TEST(Collectives, AWarmRunAllocatesNothing) {
  int none = allocation_count();
  EXPECT_EQ(std::vector<int>(9).size(), 9u);
  EXPECT_GT(allocation_count(), none) << "else the count means nothing";
  constexpr int kRanks = 4;
  ThreadHub hub(kRanks, kTimeout);
  std::atomic<int> counted{-1};
  expect_all_well(run_ranks(hub, kRanks, [&](Transport& transport) {
    Channel channel{transport};
    Group group = group_of_ranks({0, 1, 2, 3}, transport.rank());
    std::vector<float> data(1000), whole(4000), own(1000), scratch(1000);
    auto step = [&] {
      all_reduce(channel, group, {checks::bytes_of(data), checks::bytes_of(scratch), DType::f32, Reduction::sum});
      all_gather(channel, group, checks::bytes_of(data), checks::bytes_of(whole));
      reduce_scatter(
          channel, group,
          {checks::bytes_of(whole), checks::bytes_of(own), checks::bytes_of(scratch), DType::f32, Reduction::sum});
      all_to_all(channel, group, checks::bytes_of(data), checks::bytes_of(own));
      broadcast(channel, group, checks::bytes_of(data), 1);
      barrier(channel, group);
    };
    step();
    barrier(channel, group);
    int before = allocation_count();
    barrier(channel, group);
    for (int round = 0; round < 20; ++round) step();
    barrier(channel, group);
    if (transport.rank() == 0) counted = allocation_count() - before;
    barrier(channel, group);
  }));
  EXPECT_EQ(counted.load(), 0);
}

}  // namespace
}  // namespace sextant
