// Placement against lists of single elements: two axes in all states, both orders, segments, zigzag, stripes and
// padding.
#include "mesh/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "mesh/local_elements.h"

namespace sextant {
namespace {

const Mesh kMesh{{{"dp", 2}, {"tp", 3}}};
const std::vector<GlobalShape> kShapes{{12, 12}, {24, 6}, {7, 5}, {1, 9}};

struct Placed {
  GlobalShape shape;
  Layout layout;
};

std::vector<Placed> placed_tensors() {
  std::vector<Placed> all;
  for (const GlobalShape& shape : kShapes) {
    std::vector<Segments> segments{{}};
    if (shape[0] % 4 == 0) segments.push_back({0, {shape[0] / 2, shape[0] / 4, shape[0] / 4}});
    if (shape[0] == 7) segments.push_back({0, {4, 2, 1}});
    for (Layout& layout : many_layouts(
             {kInvariant, kPartial, sharded(0), sharded(1), zigzag(0), zigzag(1), striped(0), striped(1)}, segments))
      all.push_back({shape, std::move(layout)});
  }
  return all;
}

std::string text_of(const Placed& p) {
  return p.shape.text() + " " + layout_text(p.layout, kMesh);
}

template <class Visit>
void for_each_coordinate(const Mesh& mesh, const Visit& visit) {
  for (int rank = 0; rank < mesh.world_size(); ++rank) visit(coordinate_of(mesh, rank));
}

TEST(Placement, LocalShapeCountsWhatIsHeldAndPadding) {
  for (const Placed& p : placed_tensors()) {
    LocalShape local = local_shape(p.shape, p.layout, kMesh);
    for_each_coordinate(kMesh, [&](const Coordinate& at) {
      for (int dim = 0; dim < p.shape.rank(); ++dim)
        EXPECT_EQ(local[dim], static_cast<int64_t>(local_indices(p.shape[dim], p.layout, dim, kMesh, at).size()))
            << text_of(p) << " dim " << dim;
    });
  }
}

TEST(Placement, HeldSpansAreTheElementsOfTheList) {
  for (const Placed& p : placed_tensors()) {
    for_each_coordinate(kMesh, [&](const Coordinate& at) {
      for (int dim = 0; dim < p.shape.rank(); ++dim) {
        ElementList expected = local_indices(p.shape[dim], p.layout, dim, kMesh, at), got(expected.size(), -1);
        for (const Span& span : held(p.shape[dim], p.layout, dim, kMesh, at)) {
          EXPECT_GT(span.count, 0);
          ASSERT_LE(span.local + span.count, static_cast<int64_t>(got.size())) << text_of(p);
          for (int64_t i = 0; i < span.count; ++i) got[static_cast<size_t>(span.local + i)] = span.global_at(i);
        }
        EXPECT_EQ(got, expected) << text_of(p) << " dim " << dim;
      }
    });
  }
}

// Along sharded axes the ranks share the elements out; along the others each has them all.
TEST(Placement, EveryElementIsHeldOncePerCopy) {
  for (const Placed& p : placed_tensors()) {
    int copies = 1;
    for (int axis = 0; axis < kMesh.axis_count(); ++axis)
      if (p.layout.at(axis).kind != StateKind::sharded) copies *= kMesh.size(axis);
    std::map<int64_t, int> holders;
    for_each_coordinate(kMesh, [&](const Coordinate& at) {
      Side side{p.layout, at};
      for (const Box& box : common_boxes(p.shape, kMesh, side, side)) EXPECT_EQ(box.from, box.to);
      std::vector<Span> rows = held(p.shape[0], p.layout, 0, kMesh, at),
                        columns = held(p.shape[1], p.layout, 1, kMesh, at);
      for (const Span& r : rows)
        for (const Span& c : columns)
          for (int64_t i = 0; i < r.count; ++i)
            for (int64_t j = 0; j < c.count; ++j) ++holders[r.global_at(i) * p.shape[1] + c.global_at(j)];
    });
    EXPECT_EQ(static_cast<int64_t>(holders.size()), p.shape.count()) << text_of(p);
    for (const auto& [element, count] : holders) ASSERT_EQ(count, copies) << text_of(p) << " element " << element;
  }
}

using Pairs = std::set<std::pair<int64_t, int64_t>>;  // local places of one element on the two sides

Pairs pairs_of(const std::vector<Box>& boxes, const LocalShape& from, const LocalShape& to) {
  Pairs pairs;
  for (const Box& box : boxes)
    for (int64_t i = 0; i < box.extent[0]; ++i)
      for (int64_t j = 0; j < box.extent[1]; ++j)
        pairs.insert({(box.from[0] + i) * from[1] + box.from[1] + j, (box.to[0] + i) * to[1] + box.to[1] + j});
  return pairs;
}

Pairs shared_elements(const ElementList& from, const ElementList& to) {
  std::map<int64_t, int64_t> place;
  for (size_t i = 0; i < from.size(); ++i)
    if (from[i] >= 0) place[from[i]] = static_cast<int64_t>(i);
  Pairs pairs;
  for (size_t i = 0; i < to.size(); ++i)
    if (auto at = place.find(to[i]); at != place.end()) pairs.insert({at->second, static_cast<int64_t>(i)});
  return pairs;
}

TEST(Placement, CommonBoxesAreWhatBothSidesHold) {
  const GlobalShape shape{14, 6};
  std::vector<Layout> layouts =
      many_layouts({kInvariant, sharded(0), sharded(1), zigzag(0), striped(0)}, {{}, {0, {8, 4, 2}}});
  const Coordinate here{1, 0}, there{0, 2};
  for (const Layout& from : layouts) {
    ElementList from_elements = local_elements(shape, from, kMesh, here);
    LocalShape from_shape = local_shape(shape, from, kMesh);
    for (const Layout& to : layouts) {
      std::vector<Box> boxes = common_boxes(shape, kMesh, {from, here}, {to, there});
      int64_t count = 0;
      for (const Box& box : boxes) count += box.count();
      Pairs expected = shared_elements(from_elements, local_elements(shape, to, kMesh, there));
      std::string text = layout_text(from, kMesh) + " against " + layout_text(to, kMesh);
      ASSERT_EQ(pairs_of(boxes, from_shape, local_shape(shape, to, kMesh)), expected) << text;
      EXPECT_EQ(count, static_cast<int64_t>(expected.size())) << text << ": boxes overlap";
    }
  }
}

// The parts of the ranks, one behind the other, element by element.
bool parts_lie_in_order(const GlobalShape& shape, const Layout& whole, const Layout& part,
                        const std::vector<int>& axes) {
  ElementList parts;
  for (int rank : group_of(kMesh, 0, axes)) {
    ElementList own = local_elements(shape, part, kMesh, coordinate_of(kMesh, rank));
    parts.insert(parts.end(), own.begin(), own.end());
  }
  return parts == local_elements(shape, whole, kMesh, coordinate_of(kMesh, 0));
}

bool is_plain(const Layout& layout) {
  return std::all_of(layout.states.begin(), layout.states.end(),
                     [](const AxisState& state) { return state.order == ShardOrder::plain; });
}

TEST(Placement, PartsAreContiguousWhereTheirBytesAre) {
  int contiguous = 0, scattered = 0;
  for (const Placed& p : placed_tensors()) {
    for (const std::vector<int>& axes : {std::vector<int>{0}, {1}, {0, 1}}) {
      bool sharded_along_all = true;
      Layout whole = p.layout;
      for (int axis : axes) {
        sharded_along_all = sharded_along_all && p.layout.at(axis).kind == StateKind::sharded;
        whole.states[static_cast<size_t>(axis)] = kReplicated;
      }
      if (!sharded_along_all) continue;
      bool expected = parts_lie_in_order(p.shape, whole, p.layout, axes);
      bool got = parts_are_contiguous(p.shape, kMesh, whole, p.layout, axes);
      // Where it says no the parts are packed, which is never wrong: it may do so where a rank holds several pieces.
      EXPECT_LE(got, expected) << text_of(p);
      EXPECT_TRUE(got == expected || p.layout.segments.any() || !is_plain(p.layout)) << text_of(p);
      ++(expected ? contiguous : scattered);
    }
  }
  EXPECT_GT(contiguous, 10);
  EXPECT_GT(scattered, 10);
}

// Rows of two to columns of two on four ranks: the last rank gets no column, and nobody sends more than a square of
// two.
TEST(Placement, LargestPartOfAnExchange) {
  Mesh mesh{{{"dp", 2}, {"tp", 4}}};
  Layout rows = invariant_layout(mesh), columns = rows;
  rows.states[1] = sharded(0), columns.states[1] = sharded(1);
  EXPECT_EQ(largest_exchange({8, 6}, mesh, rows, columns, {1}), 4);
  EXPECT_EQ(largest_exchange({8, 9}, mesh, rows, columns, {1}), 6);
}

// Against the boxes of every pair of ranks of the group.
TEST(Placement, LargestExchangeIsThatOfSomePair) {
  const GlobalShape shape{14, 6};
  std::vector<Layout> layouts =
      many_layouts({kInvariant, sharded(0), sharded(1), zigzag(0), striped(0)}, {{}, {0, {8, 4, 2}}});
  for (const Layout& from : layouts)
    for (const Layout& to : layouts)
      for (const std::vector<int>& axes : {std::vector<int>{0}, {1}, {0, 1}}) {
        if (axes.size() == 2 && from.segments.any() && to.segments.any()) continue;  // half of the time
        int64_t most = 0;
        for (int sender : group_of(kMesh, 0, axes))
          for (int receiver : group_of(kMesh, 0, axes)) {
            int64_t count = 0;
            for (const Box& box :
                 common_boxes(shape, kMesh, {from, coordinate_of(kMesh, sender)}, {to, coordinate_of(kMesh, receiver)}))
              count += box.count();
            most = std::max(most, count);
          }
        EXPECT_EQ(largest_exchange(shape, kMesh, from, to, axes), most)
            << layout_text(from, kMesh) << " to " << layout_text(to, kMesh) << " along " << axes.size() << " axes";
      }
}

}  // namespace
}  // namespace sextant
