// gpt-oss, whose experts have biases and a clamped SwiGLU, on meshes that divide experts: as on one rank.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "mesh_cases.h"
#include "same_training.h"
#include "scratch_run.h"

namespace sextant {
namespace {

std::vector<std::string> gpt_oss_settings() {
  std::vector<std::string> settings = common_settings();
  for (const char* setting :
       {"model.architecture=gpt_oss", "model.window=8", "model.layers=2", "train.steps=10", "train.eval_every=0"})
    settings.emplace_back(setting);
  return settings;
}

std::vector<std::string> on(const MeshCase& mesh, int64_t microbatch) {
  std::vector<std::string> settings = gpt_oss_settings();
  settings.insert(settings.end(), mesh.settings.begin(), mesh.settings.end());
  settings.push_back(fmt::format("batch.microbatch={}", microbatch));
  return settings;
}

int64_t data_parallel_ranks(const MeshCase& mesh) {
  for (const std::string& setting : mesh.settings)
    if (setting.starts_with("mesh.dp=")) return std::stoll(setting.substr(8));
  return 1;
}

class GptOssOnMeshes : public testing::TestWithParam<MeshCase> {
 protected:
  static ScratchRun& scratch() {
    static ScratchRun run("gpt-oss-meshes");
    return run;
  }
};

// Experts are balanced over the sequences that go through the model at once, on all ranks together.
TEST_P(GptOssOnMeshes, TrainsAsOneRankDoes) {
  const MeshCase& mesh = GetParam();
  int64_t at_once = data_parallel_ranks(mesh);
  std::string one = fmt::format("one-{}", at_once);
  if (!std::filesystem::exists(scratch().root() / one)) scratch().run(one, on({"one", {}}, at_once), "tiny-moe.toml");
  scratch().run(mesh.name, on(mesh, 1), "tiny-moe.toml");
  expect_same_losses(scratch().losses(mesh.name), scratch().losses(one));
  expect_same_weights(scratch().root() / one / "step-000010", scratch().root() / mesh.name / "step-000010");
}

std::vector<MeshCase> gpt_oss_meshes() {
  return {
      {"dp2_ep2", {"mesh.dp=2", "mesh.ep=2"}},
      {"dp4_ep4", {"mesh.dp=4", "mesh.ep=4"}},
      {"tp4_etp2_ep2", {"mesh.tp=4", "mesh.etp=2", "mesh.ep=2"}},
      {"dp4_tp2_etp2_ep4", {"mesh.dp=4", "mesh.tp=2", "mesh.etp=2", "mesh.ep=4"}},
      {"dp2_tp2_ep2_sp", {"mesh.dp=2", "mesh.tp=2", "mesh.ep=2", "mesh.sequence_parallel=true"}},
      {"tp2_etp1_ep2_sp", {"mesh.tp=2", "mesh.etp=1", "mesh.ep=2", "mesh.sequence_parallel=true"}},
      {"cp2_dp2_ep4", {"mesh.cp=2", "mesh.dp=2", "mesh.ep=4", "mesh.context=ulysses"}},
      {"tp2_cp2_ulysses", {"mesh.tp=2", "mesh.cp=2", "mesh.context=ulysses"}},
      {"pp2_dp2_ep2_zero3", {"mesh.pp=2", "mesh.dp=2", "mesh.ep=2", "mesh.zero=3"}},
      {"tp4_etp2_ep2_tokens", {"mesh.tp=4", "mesh.etp=2", "mesh.ep=2", "mesh.expert_dispatch=tokens"}},
      {"dp4_ep2_zero3_full", {"mesh.dp=4", "mesh.ep=2", "mesh.zero=3", "train.recompute=full"}},
  };
}

INSTANTIATE_TEST_SUITE_P(ExpertMeshes, GptOssOnMeshes, testing::ValuesIn(gpt_oss_meshes()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(GptOssMeshChanges, AreResumedFromOneAnother) {
  const std::vector<MeshCase> chain{{"one", {}},
                                    {"dp4_ep4", {"mesh.dp=4", "mesh.ep=4", "mesh.zero=1"}},
                                    {"tp4_etp2_ep2", {"mesh.tp=4", "mesh.etp=2", "mesh.ep=2"}},
                                    {"pp2_dp2_ep2", {"mesh.pp=2", "mesh.dp=2", "mesh.ep=2", "mesh.zero=3"}}};
  ScratchRun scratch("gpt-oss-changes");
  auto steps = [&](const MeshCase& mesh, size_t count) {
    std::vector<std::string> settings = on(mesh, 8 / data_parallel_ranks(mesh));
    settings.push_back(fmt::format("train.steps={}", count));
    return settings;
  };
  scratch.run("alone", steps(chain[0], 8), "tiny-moe.toml");
  for (size_t i = 0; i < chain.size(); ++i) scratch.run("changing", steps(chain[i], 2 * (i + 1)), "tiny-moe.toml");
  expect_same_losses(scratch.losses("changing"), scratch.losses("alone"));
  expect_same_weights(scratch.root() / "alone" / "step-000008", scratch.root() / "changing" / "step-000008");
}

}  // namespace
}  // namespace sextant
