// Collectives on machines small enough to reckon by hand, and against measured ones.
#include "cost/collective.h"

#include <gtest/gtest.h>

#include <numeric>

namespace sextant {
namespace {

Machine two_level(double near, double far, int64_t per_node) {
  Machine machine;
  machine.devices_per_node = per_node;
  machine.levels = {{.name = "node", .devices = per_node, .link = {near, 0}},
                    {.name = "cluster", .devices = 0, .link = {far, 0}}};
  machine.tables = {.near_link = 1, .far_link = 1};
  return machine;
}

std::vector<int> ranks(int from, int count, int stride = 1) {
  std::vector<int> out(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) out[static_cast<size_t>(i)] = from + i * stride;
  return out;
}

TEST(Links, WhatWasReachedTakesNoEfficiency) {
  Machine machine = two_level(1e11, 1e10, 8);
  machine.tables.far_link = 0.5;
  GroupPlace across = place_group(machine, ranks(0, 16));
  EXPECT_EQ(group_bandwidth(machine, machine.tables, across), 8 * 0.5e10);
  machine.levels.back().link.reached = true;
  EXPECT_EQ(group_bandwidth(machine, machine.tables, across), 8 * 1e10);
}

// Sixteen ranks on two nodes: fourteen hops inside and one between, at 0.6 and 2.7 us in the protocol of short
// messages.
TEST(Coalesced, EachTensorOfACallGoesAroundARing) {
  Machine machine = two_level(1e11, 1e10, 8);
  GroupPlace across = place_group(machine, ranks(0, 16));
  auto seconds = [&](Collective kind, double bytes) {
    return coalesced_seconds(machine, machine.tables, kind, bytes, across);
  };
  EXPECT_NEAR(seconds(Collective::all_gather, 1), 14 * 0.6e-6 + 2.7e-6, 1e-9);
  EXPECT_NEAR(seconds(Collective::all_reduce, 1), 2 * (14 * 0.6e-6 + 2.7e-6), 1e-9);
  EXPECT_NEAR(seconds(Collective::all_gather, 8e9) / (8e9 * 15 / 16 / 8e10), 1,
              0.01);  // long ones are a matter of bandwidth
  // A call of its own may have slower hops; a part of a call has not.
  double part = seconds(Collective::all_reduce, 1e6),
         alone = collective_seconds(machine, machine.tables, Collective::all_reduce, 1e6, across);
  machine.levels.back().link.alone_s = 1e-3;
  EXPECT_EQ(seconds(Collective::all_reduce, 1e6), part);
  EXPECT_NEAR(collective_seconds(machine, machine.tables, Collective::all_reduce, 1e6, across), alone + 2e-3, 1e-4);
  EXPECT_EQ(coalesced_seconds(machine, machine.tables, Collective::all_gather, 1e6, place_group(machine, {3})), 0);
}

// There and back: whatever the size and the protocol that carries it.
TEST(Coalesced, AnAllReduceIsTwiceAReduceScatter) {
  Machine machine = two_level(1e11, 1e10, 8);
  for (int count : {2, 8, 16, 64}) {
    GroupPlace place = place_group(machine, ranks(0, count));
    for (double bytes : {1e3, 1e6, 1e9, 8e9}) {
      double scatter = coalesced_seconds(machine, machine.tables, Collective::reduce_scatter, bytes, place);
      EXPECT_DOUBLE_EQ(coalesced_seconds(machine, machine.tables, Collective::all_reduce, bytes, place), 2 * scatter)
          << count << " " << bytes;
      EXPECT_EQ(coalesced_seconds(machine, machine.tables, Collective::all_gather, bytes, place), scatter);
    }
    double n = count, long_message = 8e9 * (n - 1) / n / group_bandwidth(machine, machine.tables, place);
    EXPECT_NEAR(coalesced_seconds(machine, machine.tables, Collective::all_reduce, 8e9, place) / (2 * long_message), 1,
                0.02)
        << count;
  }
}

// Sixteen ranks on two nodes, each with 16 MB for the others: a sixteenth to everyone. Seven of them are near, eight
// are not.
TEST(CollectiveSeconds, AllToAllByHand) {
  Machine machine = two_level(1e11, 1e10, 8);
  auto seconds = [&](int count) {
    return collective_seconds(machine, machine.tables, Collective::all_to_all, 16e6,
                              place_group(machine, ranks(0, count)));
  };
  EXPECT_NEAR(seconds(16), (8.4 + 15 * 2.7) * 1e-6 + 8e6 / 1e10, 1e-12);
  EXPECT_NEAR(seconds(8), (8.4 + 7 * 0.6) * 1e-6 + 14e6 / 1e11, 1e-12);
}

// A byte over 64 nodes of eight, in the protocol of short messages along a tree: seven hops in the node and six
// between, there and back.
TEST(CollectiveSeconds, ShortAllReducesTakeATree) {
  Machine machine = two_level(1e11, 1e10, 8);
  double seconds =
      collective_seconds(machine, machine.tables, Collective::all_reduce, 1, place_group(machine, ranks(0, 512)));
  EXPECT_NEAR(seconds, (6.8 + 2 * (7 * 0.6 + 6 * 5.0)) * 1e-6, 1e-9);
}

// A switch that adds up: everything travels once, at 1.3 of the ring's rate, from five ranks on.
TEST(CollectiveSeconds, AllReduceInTheSwitch) {
  Machine machine = two_level(1e11, 1e10, 8);
  auto seconds = [&](int count) {
    return collective_seconds(machine, machine.tables, Collective::all_reduce, 1e9,
                              place_group(machine, ranks(0, count)));
  };
  double four = seconds(4), sixteen = seconds(16);
  machine.levels.front().reduces_in_switch = true;
  EXPECT_NEAR(seconds(8), 25e-6 + 2e9 * 7 / 8 / (1.3 * 1e11), 1e-9);
  EXPECT_EQ(seconds(4), four);
  EXPECT_EQ(seconds(16), sixteen);
}

TEST(PlaceGroup, TellsHowManyShareANode) {
  Machine machine = two_level(1, 1, 8);
  GroupPlace inside = place_group(machine, ranks(8, 8));
  EXPECT_EQ(inside.level, 0);
  EXPECT_EQ(inside.inside, (std::vector<int64_t>{8, 8}));
  GroupPlace across = place_group(machine, ranks(0, 16, 8));
  EXPECT_EQ(across.level, 1);
  EXPECT_EQ(across.inside, (std::vector<int64_t>{1, 16}));
  EXPECT_EQ(place_group(machine, ranks(0, 32, 2)).inside.front(), 4);
}

TEST(GroupBandwidth, MembersOfANodeShareTheirWayOut) {
  Machine machine = two_level(300e9, 25e9, 8);
  auto bandwidth = [&](const std::vector<int>& group) {
    return group_bandwidth(machine, machine.tables, place_group(machine, group));
  };
  EXPECT_DOUBLE_EQ(bandwidth(ranks(0, 8)), 300e9);
  EXPECT_DOUBLE_EQ(bandwidth(ranks(0, 16)), 200e9);    // eight links leave each node
  EXPECT_DOUBLE_EQ(bandwidth(ranks(0, 16, 8)), 25e9);  // one rank of each node
  EXPECT_DOUBLE_EQ(bandwidth(ranks(0, 16, 4)), 50e9);  // two of each
}

TEST(CollectiveSeconds, LongMessagesGoAtTheRateOfTheRing) {
  Machine machine = two_level(300e9, 25e9, 8);
  double bytes = 64e9;
  auto seconds = [&](Collective kind, const std::vector<int>& group) {
    return collective_seconds(machine, machine.tables, kind, bytes, place_group(machine, group));
  };
  EXPECT_NEAR(seconds(Collective::all_reduce, ranks(0, 8)), 2 * bytes * 7 / 8 / 300e9, 1e-3);
  EXPECT_NEAR(seconds(Collective::all_gather, ranks(0, 8)), bytes * 7 / 8 / 300e9, 1e-3);
  EXPECT_NEAR(seconds(Collective::reduce_scatter, ranks(0, 16, 8)), bytes * 15 / 16 / 25e9, 1e-2);
  EXPECT_NEAR(seconds(Collective::send, {0, 8}), bytes / 25e9, 1e-3);
  EXPECT_EQ(seconds(Collective::all_reduce, {5}), 0);
}

// Efficiency of a ring against the bus limit as SimAI tells it (nodes of eight H100s with 48.5 GB/s per device).
// All-reduces may take a tree, which its table does not know.
TEST(CollectiveSeconds, LatencyGrowsWithTheRingAsMeasured) {
  Machine machine = two_level(371e9, 48.5e9, 8);
  struct Case {
    int nodes;
    double bytes, share;
  };
  for (const Case& c : {Case{128, 1e9, 0.315}, Case{128, 16e9, 0.919}, Case{32, 1e9, 0.74}, Case{8, 256e6, 0.69}}) {
    auto group = ranks(0, 8 * c.nodes);
    double n = 8.0 * c.nodes,
           limit = c.bytes * (n - 1) / n / group_bandwidth(machine, machine.tables, place_group(machine, group));
    double share = limit / collective_seconds(machine, machine.tables, Collective::all_gather, c.bytes,
                                              place_group(machine, group));
    EXPECT_NEAR(share, c.share, 0.17) << c.nodes << " nodes, " << c.bytes;
  }
}

TEST(CollectiveSeconds, GrowsWithBytesAndNeverShrinksWithRanks) {
  Machine machine = two_level(300e9, 25e9, 8);
  for (Collective kind :
       {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter, Collective::all_to_all}) {
    double before = 0;
    for (double bytes = 1e3; bytes < 1e10; bytes *= 10) {
      double now = collective_seconds(machine, machine.tables, kind, bytes, place_group(machine, ranks(0, 32)));
      EXPECT_GE(now, before);
      before = now;
    }
    EXPECT_LE(collective_seconds(machine, machine.tables, kind, 1e8, place_group(machine, ranks(0, 8))),
              collective_seconds(machine, machine.tables, kind, 1e8, place_group(machine, ranks(0, 64))));
  }
}

}  // namespace
}  // namespace sextant
