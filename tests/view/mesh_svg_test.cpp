#include "view/mesh_svg.h"

#include <gtest/gtest.h>

#include "view/xml_check.h"

namespace sextant {
namespace {

TEST(MeshSvg, OneDeviceSendsNothing) {
  std::string svg = mesh_svg({.mesh = {{{"pp", 1}, {"dp", 1}, {"tp", 1}}}, .devices_per_node = 8, .sent = {}});
  EXPECT_EQ(why_not_well_formed(svg), "");
  EXPECT_EQ(count_of(svg, "nothing is sent"), 1u);
  EXPECT_EQ(count_of(svg, "<title>rank "), 1u);
}

TEST(MeshSvg, TellsWhetherAnAxisStaysInsideANode) {
  MeshPicture picture{
      .mesh = {{{"pp", 2}, {"dp", 4}, {"tp", 8}}}, .devices_per_node = 8, .sent = {{"tp", 1 << 30}, {"dp", 1 << 20}}};
  std::vector<std::string> panels = mesh_panels(picture);
  ASSERT_EQ(panels.size(), 3u);
  EXPECT_EQ(count_of(panels[0], "tp: 8 groups of 8"), 1u);
  EXPECT_EQ(count_of(panels[0], "inside a node; each sends 1.00 GiB in a step"), 1u);
  EXPECT_EQ(count_of(panels[1], "dp: 16 groups of 4"), 1u);
  EXPECT_EQ(count_of(panels[1], "between 4 nodes; each sends 1.00 MiB in a step"), 1u);
  EXPECT_EQ(count_of(panels[2], "between 2 nodes; nothing is sent along it alone"), 1u);
}

// Groups of three on nodes of four: the first fits, the second does not.
TEST(MeshSvg, LooksAtAllGroupsNotOnlyTheOneDrawn) {
  std::vector<std::string> panels = mesh_panels({.mesh = {{{"dp", 2}, {"tp", 3}}}, .devices_per_node = 4, .sent = {}});
  EXPECT_EQ(count_of(panels[0], "some of them between nodes"), 1u);
}

TEST(MeshSvg, ASetOfAxesHasAPanelWhenMuchIsSentAlongIt) {
  MeshPicture picture{.mesh = {{{"dp", 2}, {"cp", 2}, {"tp", 2}}},
                      .devices_per_node = 8,
                      .sent = {{"dp,cp", 1000}, {"dp,cp,tp", 4}, {"tp", 1000}}};
  std::vector<std::string> panels = mesh_panels(picture);
  ASSERT_EQ(panels.size(), 4u);
  EXPECT_EQ(count_of(panels[3], "dp,cp: 2 groups of 4"), 1u);
}

TEST(MeshSvg, AHundredThousandRanksAreACorner) {
  for (int64_t per_node : {8, 72, 100'000, 1}) {
    MeshPicture picture{
        .mesh = {{{"pp", 16}, {"dp", 781}, {"tp", 8}}}, .devices_per_node = per_node, .sent = {{"dp", 1}}};
    std::string svg = mesh_svg(picture);
    EXPECT_LT(svg.size(), 300'000u) << per_node;
    EXPECT_EQ(why_not_well_formed(svg), "");
  }
  // The last of rank 0's group along pp is rank 15 · 781 · 8, on node 11,715.
  std::vector<std::string> panels =
      mesh_panels({.mesh = {{{"pp", 16}, {"dp", 781}, {"tp", 8}}}, .devices_per_node = 8, .sent = {}});
  EXPECT_EQ(count_of(panels[2], "node 11,715"), 1u);
  EXPECT_EQ(count_of(panels[2], "rank 93720: pp=15 dp=0 tp=0"), 1u);
}

TEST(MeshSvg, NodesNeedNotBeKnown) {
  std::string svg = mesh_svg({.mesh = {{{"dp", 12}}}, .devices_per_node = 0, .sent = {}});
  EXPECT_EQ(why_not_well_formed(svg), "");
  EXPECT_EQ(count_of(svg, "ranks 8 to 11"), 1u);
  EXPECT_EQ(count_of(svg, "node"), 0u);
}

TEST(MeshSvg, HostileWordsAreWords) {
  const AxisDef hostile{.name = kHostile};
  std::string svg =
      mesh_svg({.mesh = {{{hostile, 4}}}, .devices_per_node = 2, .sent = {{kHostile, 5}, {",,", 7}, {"no,such", 9}}});
  EXPECT_EQ(why_not_well_formed(svg), "");
  EXPECT_EQ(count_of(svg, "<script"), 0u);
}

}  // namespace
}  // namespace sextant
