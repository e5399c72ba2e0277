// Axes as config keys: every axis has its key, and sizes, products and meshes are made of the same table.
#include "config/mesh_axes.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "config/schema.h"

namespace sextant {
namespace {

TEST(MeshAxes, EveryAxisHasAKey) {
  for (const AxisDef& axis : kAxes) {
    auto rows = std::ranges::count_if(
        kMeshAxes, [&](const MeshAxis& row) { return row.axis->role == axis.role || row.replicas == &axis; });
    EXPECT_EQ(rows, 1) << axis.name;
  }
  for (const MeshAxis& row : kMeshAxes) {
    ASSERT_NE(row.axis, nullptr) << row.key;
    EXPECT_EQ(row.key, "mesh." + std::string(row.name()));
    EXPECT_EQ(&axis_of(row.size), &row);
    const Key* key = find_key(row.key);
    ASSERT_NE(key, nullptr) << row.key;
    EXPECT_EQ(key->help, row.axis->meaning);
    RunConfig run;
    key->set(run, int64_t{7});
    EXPECT_EQ(row.size_in(run.mesh), 7) << row.key;
    EXPECT_EQ(ranks_of(run.mesh), 7) << row.key;
  }
}

// The product of the axes, as docs and the section's help state it.
TEST(MeshAxes, TheSectionNamesTheAxesOfTheProduct) {
  auto section = std::ranges::find(sections(), "mesh", &Section::name);
  for (const MeshAxis& row : kMeshAxes)
    EXPECT_NE(section->help.find("`" + std::string(row.name()) + "`"), std::string_view::npos) << row.key;
}

TEST(MeshAxes, MakeProductsAndTexts) {
  MeshSection mesh{.dp = 2, .tp = 3, .pp = 5, .cp = 7};
  EXPECT_EQ(ranks_of(mesh), 210);
  EXPECT_EQ(ranks_as_double(mesh), 210);
  EXPECT_EQ(sizes_text(mesh), "dp 2 × tp 3 × pp 5 × cp 7");
  EXPECT_EQ(sizes_text(mesh, " · "), "dp 2 · tp 3 · pp 5 · cp 7");
  EXPECT_EQ(axis_keys(), (std::vector<std::string>{"mesh.dp", "mesh.tp", "mesh.pp", "mesh.cp"}));
  mesh.dp = mesh.tp = mesh.pp = mesh.cp = 1 << 20;
  EXPECT_EQ(ranks_as_double(mesh), 0x1p80);
}

TEST(MeshAxes, MakeTheMeshOfARun) {
  EXPECT_EQ(mesh_of({}).text(), "pp=1 dp=1 cp=1 tp=1");
  EXPECT_EQ(mesh_of({.dp = 2, .tp = 3, .pp = 5, .cp = 7}).text(), "pp=5 dp=2 cp=7 tp=3");
  EXPECT_EQ(mesh_of({.dp = 8, .zero = 3, .zero_ranks = 4}).text(), "pp=1 dp_out=2 dp=4 cp=1 tp=1");
  EXPECT_EQ(mesh_of({.dp = 8, .zero = 3, .zero_ranks = 8}).text(), "pp=1 dp=8 cp=1 tp=1");
}

}  // namespace
}  // namespace sextant
