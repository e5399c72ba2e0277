// A parameter says over which axes its gradient is summed and ZeRO may shard it: two parameters of one model may differ
// in that, as the weights of experts and of attention will.
#include "passes/storage.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "ops/ops.h"

namespace sextant {
namespace {

const Mesh kMesh{{{"dp_out", 2}, {"dp", 2}, {"cp", 2}, {"tp", 2}}};

// Split by rows over cp for use, and replicated over the axes of `data_axes`.
Value parameter(std::vector<int> data_axes) {
  Value value{.path = "w", .kind = ValueKind::parameter, .shape = {16, 4}, .layout = invariant_layout(kMesh)};
  value.layout.states[2] = sharded(0);
  for (int axis : data_axes) value.layout.states[static_cast<size_t>(axis)] = kReplicated;
  value.data_axes = std::move(data_axes);
  return value;
}

std::string text(const Layout& layout) {
  return layout_text(layout, kMesh);
}

TEST(Storage, ShardsOverTheParametersOwnAxes) {
  Value dense = parameter({0, 1, 2}), split = parameter({0, 1});
  EXPECT_EQ(text(stored_gradient_layout(dense, kMesh, 1)), "dp_out:P dp:P cp:P");
  EXPECT_EQ(text(stored_gradient_layout(dense, kMesh, 2)), "dp_out:P dp:S(0) cp:S(0)");
  EXPECT_EQ(text(update_layout(dense, kMesh, 0)), "I");
  EXPECT_EQ(text(update_layout(dense, kMesh, 1)), "dp:S(0) cp:S(0)");
  // A dim that is split for use stays split, and ZeRO splits each part further.
  EXPECT_EQ(text(stored_gradient_layout(split, kMesh, 1)), "dp_out:P dp:P cp:S(0)");
  EXPECT_EQ(text(stored_gradient_layout(split, kMesh, 2)), "dp_out:P cp:S(0) dp:S(0)");
  EXPECT_EQ(text(update_layout(split, kMesh, 0)), "cp:S(0)");
  EXPECT_EQ(text(update_layout(split, kMesh, 1)), "cp:S(0) dp:S(0)");
}

TEST(Storage, DataAxesArePrintedWhereTheyAreNotTheMeshs) {
  Graph graph{.name = "axes", .mesh = kMesh, .values = {}, .ops = {}};
  for (const std::vector<int>& axes : {std::vector<int>{0, 1, 2}, {0, 1}, {}}) graph.add(parameter(axes));
  graph.values[1].stored = {"both", 8};
  std::string printed = print(graph);
  EXPECT_NE(printed.find(" w in both+8+0 data <dp_out dp>\n"), std::string::npos) << printed;
  EXPECT_NE(printed.find(" w data <>\n"), std::string::npos) << printed;
  Graph read = parse_graph(printed, find_op);
  EXPECT_EQ(print(read), printed);
  for (size_t i = 0; i < graph.values.size(); ++i) EXPECT_EQ(read.values[i].data_axes, graph.values[i].data_axes);
  EXPECT_THROW(parse_graph("graph g\nmesh dp=2\nvalue %0 parameter -1 f32[4] dp:R zeros w data <tp>\n", find_op),
               UserError);
  EXPECT_THROW(parse_graph("graph g\nmesh nowhere=2\n", find_op), UserError);
}

TEST(Storage, VerifyFindsADataAxisWithoutASum) {
  Graph graph{.name = "axes", .mesh = kMesh, .values = {}, .ops = {}};
  graph.add(parameter({0, 1}));
  verify(graph, Stage::built, "test");
  graph.values[0].layout.states[1] = kInvariant;
  EXPECT_THROW(verify(graph, Stage::built, "test"), Bug);
}

}  // namespace
}  // namespace sextant
