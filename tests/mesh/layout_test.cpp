#include "mesh/layout.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "mesh/redistribution.h"

namespace sextant {
namespace {

const Mesh kMesh{{{"pp", 1}, {"dp", 2}, {"cp", 1}, {"tp", 4}}};

TEST(Mesh, RanksAndCoordinatesAreInverse) {
  for (int rank = 0; rank < kMesh.world_size(); ++rank) EXPECT_EQ(rank_of(kMesh, coordinate_of(kMesh, rank)), rank);
  EXPECT_EQ(coordinate_of(kMesh, 5), (Coordinate{0, 1, 0, 1}));
  EXPECT_EQ(group_of(kMesh, 5, std::vector<int>{3}), (std::vector<int>{4, 5, 6, 7}));
  EXPECT_EQ(group_of(kMesh, 5, std::vector<int>{1}), (std::vector<int>{1, 5}));
}

TEST(Layout, LocalShapeSplitsSegmentsAlikeAndPads) {
  Layout layout = invariant_layout(kMesh);
  layout.states[3] = sharded(0);
  EXPECT_EQ(local_shape({64, 8}, layout, kMesh), (LocalShape{16, 8}));
  layout.segments = Segments{0, {32, 16, 16}};
  EXPECT_EQ(local_shape({64, 8}, layout, kMesh), (LocalShape{16, 8}));
  EXPECT_EQ(local_shape({66, 8}, Layout{layout.states, {}, {}}, kMesh), (LocalShape{17, 8}));
  layout.states[1] = sharded(0);
  EXPECT_EQ(local_shape({64, 8}, layout, kMesh), (LocalShape{8, 8}));
}

TEST(Layout, OrderPutsStorageAxesMinor) {
  Layout layout{.states = {kInvariant, sharded(0), kInvariant, sharded(0)}, .order = {3, 1}};
  EXPECT_EQ(axes_of_dim(layout, 0), (std::vector<int>{3, 1}));
}

TEST(Layout, PrintsAndParsesBack) {
  for (const char* text : {"I", "dp:S(0) tp:R", "tp:P", "tp:P(max)", "dp:R tp:S(1) 1:32|16|16"})
    EXPECT_EQ(layout_text(parse_layout(text, kMesh), kMesh), text);
  EXPECT_THROW(parse_layout("xx:R", kMesh), UserError);
  EXPECT_THROW(parse_layout("tp:Q", kMesh), UserError);
  EXPECT_THROW(parse_layout("tp", kMesh), UserError);
}

// The gradient of a value that went from -> to comes back gradient(to) -> gradient(from): that must be a row of the
// same table, and its transfer must be the one the row calls its backward.
TEST(Redistribution, TableIsClosedUnderAdjoints) {
  auto state = [](StateKind kind, int dim) { return kind == StateKind::sharded ? sharded(dim) : AxisState{kind}; };
  for (const TransferRule& rule : transfer_rules()) {
    AxisState from = state(rule.from, 0), to = state(rule.to, 1);
    if (!rule.backward) {
      EXPECT_THROW(gradient_state(from), Bug) << from.text() << " has no gradient, and so no way back";
      continue;
    }
    auto back = transfer(gradient_state(to), gradient_state(from));
    ASSERT_TRUE(back.has_value()) << from.text() << " -> " << to.text();
    EXPECT_EQ(*back, rule.backward) << from.text() << " -> " << to.text();
  }
}

TEST(Redistribution, GradientStatesAreInvolutive) {
  for (AxisState s : {kReplicated, kInvariant, kPartial, sharded(2)}) EXPECT_EQ(gradient_state(gradient_state(s)), s);
}

TEST(Redistribution, BytesSentAreTheRingFigures) {
  EXPECT_EQ(bytes_sent(Transfer::all_reduce, 800, 800, 4), 1200);
  EXPECT_EQ(bytes_sent(Transfer::all_gather, 200, 800, 4), 600);
  EXPECT_EQ(bytes_sent(Transfer::reduce_scatter, 800, 800, 4), 600);
  EXPECT_EQ(bytes_sent(Transfer::slice, 800, 800, 4), 0);
}

}  // namespace
}  // namespace sextant
