// Routes between layouts: every pair of states on two axes. A hop is one transfer of the table, so is its adjoint, and
// every rank finds among its group what it is to hold.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "mesh/local_elements.h"
#include "mesh/redistribution.h"

namespace sextant {
namespace {

const Mesh kMesh{{{"dp", 2}, {"tp", 3}}};
const std::vector<AxisState> kStates{kReplicated, kInvariant, kPartial, sharded(0), sharded(1), zigzag(1), striped(1)};

std::vector<Layout> layouts() {
  return many_layouts(kStates, {{}});
}

std::string text_of(const Layout& from, const Layout& to) {
  return layout_text(from, kMesh) + "  to  " + layout_text(to, kMesh);
}

Transfer backward_of(AxisState from, AxisState to) {
  for (const TransferRule& rule : transfer_rules())
    if (rule.from == from.kind && rule.to == to.kind) return rule.backward.value();
  return Transfer::nothing;
}

TEST(Route, LeadsFromOneLayoutToTheOther) {
  for (const Layout& from : layouts()) {
    for (const Layout& to : layouts()) {
      auto hops = route(from, to, kMesh);
      ASSERT_TRUE(hops) << text_of(from, to);
      EXPECT_EQ(hops->empty(), from.states == to.states);
      EXPECT_EQ((hops->empty() ? from : hops->back().to).states, to.states) << text_of(from, to);
      std::set<int> changed;
      for (const Hop& hop : *hops)
        for (int axis : hop.axes) EXPECT_TRUE(changed.insert(axis).second) << "axis " << axis << " moves twice";
      for (int axis = 0; axis < kMesh.axis_count(); ++axis)
        EXPECT_EQ(changed.contains(axis), from.at(axis) != to.at(axis)) << text_of(from, to);
    }
  }
}

TEST(Route, EachHopIsOneTransferAndSoIsItsAdjoint) {
  for (const Layout& from : layouts()) {
    for (const Layout& to : layouts()) {
      auto hops = route(from, to, kMesh);
      Layout at = from;
      for (const Hop& hop : *hops) {
        at.order = hop.to.order;
        Hop same = hop_between(at, hop.to, kMesh);
        EXPECT_EQ(same.transfer, hop.transfer) << text_of(from, to);
        EXPECT_EQ(same.axes, hop.axes) << text_of(from, to);
        Hop back = hop_between(gradient_layout(hop.to), gradient_layout(at), kMesh);
        EXPECT_EQ(back.axes, hop.axes) << text_of(from, to);
        for (int axis : hop.axes) {
          EXPECT_EQ(transfer(at.at(axis), hop.to.at(axis)), hop.transfer);
          EXPECT_EQ(back.transfer, backward_of(at.at(axis), hop.to.at(axis))) << text_of(from, to);
        }
        at = hop.to;
      }
    }
  }
}

TEST(Route, WhatShrinksGoesFirst) {
  auto place = [](Transfer transfer) {
    bool shrinks = transfer == Transfer::slice || transfer == Transfer::reduce_scatter;
    bool grows = transfer == Transfer::all_gather || transfer == Transfer::pad;
    return shrinks ? 0 : grows ? 2 : 1;
  };
  for (const Layout& from : layouts())
    for (const Layout& to : layouts()) {
      auto hops = route(from, to, kMesh);
      EXPECT_TRUE(std::is_sorted(hops->begin(), hops->end(), [&](const Hop& x, const Hop& y) {
        return place(x.transfer) < place(y.transfer);
      })) << text_of(from, to);
    }
}

TEST(Route, AxesOfSizeOneTakeTheirStateForNothing) {
  const Mesh mesh{{{"dp", 1}, {"tp", 3}}};
  Layout from{.states = {sharded(0), kPartial}, .order = {}, .segments = {}};
  Layout to{.states = {kPartial, kInvariant}, .order = {}, .segments = {}};
  auto hops = route(from, to, mesh);
  ASSERT_EQ(hops->size(), 1u);
  EXPECT_EQ(hops->front().axes, (std::vector<int>{1}));
  EXPECT_EQ(hops->front().to.states, to.states);
}

std::set<int64_t> held_by(const Layout& layout, int rank) {
  ElementList all = local_elements({12, 12}, layout, kMesh, coordinate_of(kMesh, rank));
  return {all.begin(), all.end()};
}

bool holds(const std::set<int64_t>& all, const std::set<int64_t>& some) {
  return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

// Whether the ranks of every group have, between them, what the transfer is to give each of them.
bool can_be_done(const Layout& from, const Hop& hop) {
  for (int rank = 0; rank < kMesh.world_size(); ++rank) {
    std::set<int64_t> wanted = held_by(hop.to, rank), own = held_by(from, rank), between;
    bool all_have_it = true;
    for (int peer : group_of(kMesh, rank, hop.axes)) {
      std::set<int64_t> theirs = held_by(from, peer);
      all_have_it = all_have_it && holds(theirs, wanted);
      between.insert(theirs.begin(), theirs.end());
    }
    bool good = false;
    switch (hop.transfer) {
      case Transfer::nothing:
      case Transfer::keep_first:
        good = wanted == own;
        break;
      case Transfer::slice:
        good = holds(own, wanted);
        break;
      case Transfer::pad:
        good = holds(wanted, own);
        break;
      case Transfer::all_gather:
        good = wanted == between;
        break;
      case Transfer::all_to_all:
        good = holds(between, wanted);
        break;
      case Transfer::reduce_scatter:
      case Transfer::all_reduce:
      case Transfer::all_reduce_max:
        good = all_have_it;
        break;
    }
    if (!good) return false;
  }
  return true;
}

// As long as no two axes share a dim, the order in which they change does not matter.
TEST(Route, EveryRankFindsItsElementsInItsGroup) {
  auto share_a_dim = [](const Layout& l) {
    return l.at(0).kind == StateKind::sharded && l.at(1).kind == StateKind::sharded && l.at(0).dim == l.at(1).dim;
  };
  int checked = 0;
  for (const Layout& from : layouts()) {
    for (const Layout& to : layouts()) {
      if (!from.order.empty() || !to.order.empty()) continue;
      auto hops = route(from, to, kMesh);
      Layout at = from;
      bool apart = !share_a_dim(from);
      for (const Hop& hop : *hops) {
        apart = apart && !share_a_dim(hop.to);
        if (!apart) break;
        EXPECT_TRUE(can_be_done(at, hop)) << text_of(from, to) << " by way of " << layout_text(hop.to, kMesh);
        at = hop.to;
        ++checked;
      }
    }
  }
  EXPECT_GT(checked, 500);
}

// Two axes that leave one dim for another, or come to one from two, exchange at once: one after the other, neither
// group would have between its ranks what they need.
TEST(Route, AxesThatMoveBetweenSharedDimsExchangeTogether) {
  Layout rows{.states = {sharded(0), sharded(0)}, .order = {0, 1}, .segments = {}};
  Layout columns{.states = {sharded(1), sharded(1)}, .order = {0, 1}, .segments = {}};
  for (const auto& [from, to] : {std::pair(rows, columns), std::pair(columns, rows)}) {
    auto hops = route(from, to, kMesh);
    ASSERT_EQ(hops->size(), 1u);
    EXPECT_EQ(hops->front().axes, (std::vector<int>{0, 1}));
    EXPECT_TRUE(can_be_done(from, hops->front()));
  }
}

// Two axes on one dim: the minor one may come and go, the major one alone may not.
TEST(Route, OnlyTheMinorAxisOfADimCanBeGathered) {
  Layout both{.states = {sharded(0), sharded(0)}, .order = {0, 1}, .segments = {}};
  for (int axis : {0, 1}) {
    Layout gathered = both;
    gathered.states[static_cast<size_t>(axis)] = kReplicated;
    EXPECT_EQ(can_be_done(both, hop_between(both, gathered, kMesh)), axis == 1);
    EXPECT_EQ(can_be_done(gathered, hop_between(gathered, both, kMesh)), axis == 1);
  }
  Layout none{.states = {kReplicated, kReplicated}, .order = {0, 1}, .segments = {}};
  Hop together = hop_between(both, none, kMesh);
  EXPECT_EQ(together.axes, (std::vector<int>{0, 1}));
  EXPECT_TRUE(can_be_done(both, together));
}

TEST(Route, HopBetweenRefusesWhatTakesTwo) {
  Layout from{.states = {sharded(0), kPartial}, .order = {}, .segments = {}};
  Layout to{.states = {kReplicated, kInvariant}, .order = {}, .segments = {}};
  EXPECT_THROW(hop_between(from, to, kMesh), Bug);
}

}  // namespace
}  // namespace sextant
