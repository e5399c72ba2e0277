// Checkpoints know nothing of the mesh: what one mesh saved, another resumes from, with the losses of the run that
// never stopped.
#include <gtest/gtest.h>

#include "mesh_cases.h"
#include "scratch_run.h"

namespace sextant {
namespace {

using Settings = std::vector<std::string>;

Settings with(Settings settings, const Settings& more) {
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

TEST(MeshCheckpoint, ResumesOnAnyOtherMesh) {
  ScratchRun scratch("reshard");
  const char* file = "tiny-llama.toml";
  Settings common = with(common_settings(), {"train.steps=10", "checkpoint.every=5", "checkpoint.keep=0"});
  scratch.run("whole", common, file);
  std::vector<std::string> expected = scratch.losses("whole");

  scratch.run("first", with(common, {"mesh.dp=2", "mesh.tp=2", "mesh.pp=2"}), file);
  std::filesystem::remove_all(scratch.root() / "first/step-000010");
  for (const MeshCase& mesh :
       std::vector<MeshCase>{{"tp4_cp2", {"mesh.tp=4", "mesh.cp=2"}},
                             {"one", {}},
                             {"zero3_8", {"mesh.dp=8", "mesh.zero=3"}},
                             {"pp4_zbv", {"mesh.pp=2", "pipeline.schedule=zbv", "pipeline.chunks=2"}},
                             {"tp2_combined", {"mesh.tp=2", "pipeline.schedule=combined-1f1b"}},
                             {"dualpipev", {"mesh.pp=2", "pipeline.schedule=dualpipev", "pipeline.chunks=2"}},
                             {"dualpipe", {"mesh.pp=4", "pipeline.schedule=dualpipe", "pipeline.chunks=2"}}}) {
    std::filesystem::copy(scratch.root() / "first", scratch.root() / mesh.name,
                          std::filesystem::copy_options::recursive);
    scratch.run(mesh.name, with(common, mesh.settings), file);
    std::vector<std::string> losses = scratch.losses(mesh.name);
    ASSERT_EQ(losses.size(), expected.size()) << mesh.name;
    for (size_t i = 5; i < losses.size(); ++i)
      EXPECT_NEAR(std::stod(losses[i]), std::stod(expected[i]), 1e-5 * std::stod(expected[i]))
          << mesh.name << " step " << i + 1;
  }
}

// Every rank writes its own slices, and together they are the bytes that one rank would write.
TEST(MeshCheckpoint, SlicesMakeTheWholeFile) {
  ScratchRun scratch("slices");
  Settings common =
      with(common_settings(), {"train.steps=1", "optimizer.lr=0", "optimizer.warmup=0", "train.eval_every=0"});
  for (const char* file : {"tiny-llama.toml", "tiny-gpt2.toml"}) {
    std::string one = std::string("one-") + file;
    scratch.run(one, common, file);
    for (const MeshCase& mesh : std::vector<MeshCase>{
             {"tp4_sp_pp2", {"mesh.tp=4", "mesh.sequence_parallel=true", "mesh.pp=2"}},
             {"zero3_dp4_tp2", {"mesh.dp=4", "mesh.zero=3", "mesh.tp=2"}},
             {"pp4_zero1_dualpipe", {"mesh.pp=4", "mesh.zero=1", "pipeline.schedule=dualpipe", "pipeline.chunks=2"}}}) {
      std::string out = std::string(mesh.name) + file;
      scratch.run(out, with(common, mesh.settings), file);
      // With a learning rate of zero the weights are the initial ones, which no mesh changes.
      EXPECT_EQ(read_file(scratch.root() / out / "step-000001/model.safetensors"),
                read_file(scratch.root() / one / "step-000001/model.safetensors"))
          << out;
    }
  }
}

}  // namespace
}  // namespace sextant
