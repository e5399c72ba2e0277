// Llama 4, with chunks, growing queries and norms of heads without weights, on meshes that divide sequences, heads,
// layers and experts: as on one rank.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "mesh_cases.h"
#include "same_training.h"
#include "scratch_run.h"

namespace sextant {
namespace {

std::vector<std::string> llama4_on(const MeshCase& mesh, int64_t microbatch) {
  std::vector<std::string> settings = common_settings();
  // Chunks end inside of the pieces that ranks of a ring have.
  for (const char* setting :
       {"model.architecture=llama4", "model.layers=4", "model.no_rope_every=2", "model.attention_chunk=10",
        "model.temperature_positions=7", "model.temperature_strength=0.3", "model.experts.every=2",
        "model.experts.per_token=1", "model.experts.balance_loss=0.01", "train.steps=10", "train.eval_every=0"})
    settings.emplace_back(setting);
  settings.insert(settings.end(), mesh.settings.begin(), mesh.settings.end());
  settings.push_back(fmt::format("batch.microbatch={}", microbatch));
  return settings;
}

// Experts are balanced over the sequences that go through the model at once, on all ranks together.
int64_t llama4_at_once(const MeshCase& mesh) {
  for (const std::string& setting : mesh.settings)
    if (setting.starts_with("mesh.dp=")) return std::stoll(setting.substr(8));
  return 1;
}

class Llama4OnMeshes : public testing::TestWithParam<MeshCase> {
 protected:
  static ScratchRun& scratch() {
    static ScratchRun run("llama4-meshes");
    return run;
  }
};

TEST_P(Llama4OnMeshes, TrainsAsOneRankDoes) {
  const MeshCase& mesh = GetParam();
  int64_t at_once = llama4_at_once(mesh);
  std::string one = fmt::format("one-{}", at_once);
  if (!std::filesystem::exists(scratch().root() / one))
    scratch().run(one, llama4_on({"one", {}}, at_once), "tiny-moe.toml");
  scratch().run(mesh.name, llama4_on(mesh, 1), "tiny-moe.toml");
  expect_same_losses(scratch().losses(mesh.name), scratch().losses(one));
  expect_same_weights(scratch().root() / one / "step-000010", scratch().root() / mesh.name / "step-000010");
}

std::vector<MeshCase> llama4_meshes() {
  return {
      {"dp4_ep4", {"mesh.dp=4", "mesh.ep=4"}},
      {"tp4_etp2_ep2", {"mesh.tp=4", "mesh.etp=2", "mesh.ep=2"}},
      {"tp2_etp1_ep2_sp", {"mesh.tp=2", "mesh.etp=1", "mesh.ep=2", "mesh.sequence_parallel=true"}},
      {"cp4", {"mesh.cp=4"}},
      {"cp2_tp2_ep2", {"mesh.cp=2", "mesh.tp=2", "mesh.etp=2", "mesh.ep=2"}},
      {"cp2_ulysses_dp2_ep4", {"mesh.cp=2", "mesh.dp=2", "mesh.ep=4", "mesh.context=ulysses"}},
      {"pp2_dp2_ep2_zero3", {"mesh.pp=2", "mesh.dp=2", "mesh.ep=2", "mesh.zero=3"}},
      {"dp4_ep2_capacity_full",
       {"mesh.dp=4", "mesh.ep=2", "mesh.expert_capacity=1", "mesh.zero=2", "train.recompute=full"}},
  };
}

INSTANTIATE_TEST_SUITE_P(ExpertMeshes, Llama4OnMeshes, testing::ValuesIn(llama4_meshes()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace sextant
