// Experts with a capacity above which slots are dropped: counted in each sequence, so every mesh drops what one rank
// does.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "mesh_cases.h"
#include "same_training.h"
#include "scratch_run.h"

namespace sextant {
namespace {

constexpr const char* kDropped = "dropped_rows";

std::vector<std::string> dropping(const MeshCase& mesh) {
  std::vector<std::string> settings = common_settings();
  settings.insert(settings.end(), {"model.layers=2", "train.steps=6", "train.eval_every=6",
                                   "model.experts.balance_scope=sequence", "model.experts.drop_above=1"});
  settings.insert(settings.end(), mesh.settings.begin(), mesh.settings.end());
  return settings;
}

class DropsOnMeshes : public testing::TestWithParam<MeshCase> {
 protected:
  static ScratchRun& scratch() {
    static ScratchRun run("drops");
    return run;
  }
  static void run_once(const MeshCase& mesh) {
    if (!std::filesystem::exists(scratch().root() / mesh.name))
      scratch().run(mesh.name, dropping(mesh), "tiny-moe.toml");
  }
};

TEST_P(DropsOnMeshes, TrainAsOneRankDoes) {
  const MeshCase one{"one", {}}, &mesh = GetParam();
  run_once(one);
  run_once(mesh);
  expect_same_losses(scratch().losses(mesh.name), scratch().losses("one"));
  expect_same_weights(scratch().root() / "one" / "step-000006", scratch().root() / mesh.name / "step-000006");
  EXPECT_EQ(scratch().metric(mesh.name, kDropped), scratch().metric("one", kDropped));
  for (const std::string& rows : scratch().metric("one", kDropped)) EXPECT_GT(std::stod(rows), 0);
}

std::vector<MeshCase> drop_meshes() {
  return {
      {"microbatch4", {"batch.microbatch=4"}},
      {"dp2_ep2_rows", {"mesh.dp=2", "mesh.ep=2", "mesh.expert_dispatch=rows"}},
      {"dp2_ep2_tokens", {"mesh.dp=2", "mesh.ep=2", "mesh.expert_dispatch=tokens"}},
      {"dp4_ep4_gather", {"mesh.dp=4", "mesh.ep=4", "mesh.expert_dispatch=gather"}},
      {"cp2_ep2", {"mesh.cp=2", "mesh.ep=2"}},
      {"tp2_etp1_ep2_sp", {"mesh.tp=2", "mesh.etp=1", "mesh.ep=2", "mesh.sequence_parallel=true"}},
      {"pp2_dp2_ep2_zero3", {"mesh.pp=2", "mesh.dp=2", "mesh.ep=2", "mesh.zero=3", "train.recompute=full"}},
  };
}

INSTANTIATE_TEST_SUITE_P(Meshes, DropsOnMeshes, testing::ValuesIn(drop_meshes()),
                         [](const auto& info) { return std::string(info.param.name); });

// By weight or by position: other slots are dropped.
TEST_F(DropsOnMeshes, ByPositionOthersAreDropped) {
  run_once({"one", {}});
  run_once({"position", {"model.experts.drop_policy=position"}});
  EXPECT_NE(scratch().losses("position"), scratch().losses("one"));
}

// Where experts take as many as there are tokens, nothing changes.
TEST_F(DropsOnMeshes, NothingIsDroppedAtTheMost) {
  run_once({"most", {"model.experts.drop_above=2"}});
  run_once({"none", {"model.experts.drop_above=0"}});
  EXPECT_EQ(scratch().losses("most"), scratch().losses("none"));
  for (const std::string& rows : scratch().metric("most", kDropped)) EXPECT_EQ(std::stod(rows), 0);
  EXPECT_TRUE(scratch().metric("none", kDropped).empty());
}

}  // namespace
}  // namespace sextant
