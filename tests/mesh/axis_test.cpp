// The table of axes, and meshes asked by role instead of by name.
#include "mesh/axis.h"

#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "mesh/mesh.h"

namespace sextant {
namespace {

TEST(Axes, HaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (const AxisDef& axis : kAxes) {
    EXPECT_TRUE(names.insert(axis.name).second) << axis.name;
    EXPECT_EQ(axis.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), std::string_view::npos) << axis.name;
    EXPECT_EQ(find_axis(axis.name), &axis);
    EXPECT_TRUE(axis.meaning.ends_with(".")) << axis.name;
    EXPECT_EQ(axis.norm_parts, axis.role == AxisRole::pipeline) << axis.name;
    EXPECT_TRUE(!axis.zero_shards || differs_in_data(axis.role)) << axis.name;
  }
  EXPECT_EQ(find_axis("no_such_axis"), nullptr);
  EXPECT_THROW(Axis("no_such_axis", 2), Bug);
}

TEST(Axes, AreFoundByRole) {
  Mesh mesh{{{"pp", 2}, {"dp_out", 3}, {"dp", 5}, {"cp", 7}, {"tp", 11}}};
  EXPECT_EQ(mesh.find(AxisRole::pipeline), 0);
  EXPECT_EQ(mesh.find(AxisRole::tensor), 4);
  EXPECT_EQ(mesh.axes_with(AxisRole::data), (std::vector<int>{1, 2}));
  EXPECT_EQ(mesh.ranks(AxisRole::data), 15);
  EXPECT_EQ(mesh.ranks(AxisRole::context), 7);
  EXPECT_EQ(mesh.data_axes(), (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(pipeline_name(mesh), "pp");
  EXPECT_THROW(mesh.find(AxisRole::data), Bug);  // which of the two?
  Mesh small{{{"dp", 2}}};
  EXPECT_EQ(small.find(AxisRole::pipeline), std::nullopt);
  EXPECT_EQ(small.ranks(AxisRole::tensor), 1);
  EXPECT_THROW(pipeline_name(small), Bug);
}

TEST(Axes, OfAGroupAreAskedTogether) {
  Mesh mesh{{{"pp", 2}, {"dp", 2}, {"tp", 2}}};
  EXPECT_TRUE(all_have_role(mesh, {"tp"}, AxisRole::tensor));
  EXPECT_FALSE(all_have_role(mesh, {"dp", "tp"}, AxisRole::tensor));
  EXPECT_FALSE(all_have_role(mesh, {}, AxisRole::tensor));
  EXPECT_FALSE(all_have_role(mesh, {"absent"}, AxisRole::tensor));
  EXPECT_TRUE(any_differs_in_data(mesh, {"pp", "dp"}));
  EXPECT_FALSE(any_differs_in_data(mesh, {"pp", "tp"}));
}

TEST(Axes, OfAMeshAreEqualByNameAndSize) {
  const AxisDef own{.name = "own", .role = AxisRole::tensor}, same{.name = "own"};
  EXPECT_EQ(Axis(own, 2), Axis(same, 2));
  EXPECT_FALSE(Axis(own, 2) == Axis(own, 3));
  EXPECT_FALSE(Axis(own, 2) == Axis("dp", 2));
  EXPECT_EQ((Mesh{{{"dp", 1}, {own, 2}}}.text()), "dp=1 own=2");
}

}  // namespace
}  // namespace sextant
