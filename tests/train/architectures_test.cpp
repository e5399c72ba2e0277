// Every architecture of models.def, trained for real: on a mesh with pipeline stages, saved, resumed on another mesh,
// with the losses of one rank.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "mesh_cases.h"
#include "models/models.h"
#include "run/resolve_spec.h"
#include "scratch_run.h"

namespace sextant {
namespace {

constexpr int64_t kExperts = 16, kExpertWidth = 48;

// The runs share a directory for their tokens: the data is tokenized once.
class EveryArchitecture : public testing::TestWithParam<const ModelDef*> {
 protected:
  static void SetUpTestSuite() { scratch_ = std::make_unique<ScratchRun>("architectures"); }
  static void TearDownTestSuite() { scratch_.reset(); }
  static std::unique_ptr<ScratchRun> scratch_;
};
std::unique_ptr<ScratchRun> EveryArchitecture::scratch_;

INSTANTIATE_TEST_SUITE_P(Models, EveryArchitecture, testing::ValuesIn(all_models().begin(), all_models().end()),
                         [](const auto& info) { return std::string(info.param->name); });

TEST_P(EveryArchitecture, TrainsOnMeshesAndResumes) {
  const ModelDef& def = *GetParam();
  const std::string one = fmt::format("{}-one", def.name), mesh = fmt::format("{}-mesh", def.name);
  auto run = [&](std::string_view out, std::vector<std::string> axes, int steps) {
    std::vector<std::string> settings = common_settings();
    for (const std::string& setting : {fmt::format("model.architecture={}", def.name),
                                       fmt::format("model.kv_heads={}", def.free_heads && !def.takes("latent") ? 2 : 4),
                                       fmt::format("model.ffn={}", def.free_ffn ? 192 : 256),
                                       fmt::format("train.steps={}", steps), std::string("train.eval_every=0")})
      settings.push_back(setting);
    if (def.takes("latent"))
      for (const char* setting : {"model.head_dim=24", "model.latent.q_rank=40", "model.latent.kv_rank=32",
                                  "model.latent.rope_dim=8", "model.latent.value_dim=16"})
        settings.emplace_back(setting);
    // As many experts as these models are released with would take most of the time of all architectures together.
    if (std::optional<ExpertsSpec> experts = resolve_spec(scratch_->config("tiny-llama.toml", settings)).experts;
        experts && experts->count > kExperts) {
      settings.push_back(fmt::format("model.experts.count={}", kExperts));
      if (def.takes("experts.ffn")) settings.push_back(fmt::format("model.experts.ffn={}", kExpertWidth));
    }
    settings.insert(settings.end(), axes.begin(), axes.end());
    scratch_->run(out, settings);
  };
  // Experts are balanced over the sequences that go through the model at once: one on each of two ranks below.
  run(one, {"batch.microbatch=2"}, 6);
  run(mesh, {"mesh.dp=2", "mesh.tp=2", "mesh.pp=2"}, 3);
  run(mesh, {"mesh.dp=2", "mesh.zero=3", "mesh.tp=2", "mesh.sequence_parallel=true"}, 6);
  std::vector<std::string> expected = scratch_->losses(one), got = scratch_->losses(mesh);
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(std::stod(got[i]), std::stod(expected[i]), 2e-5 * std::stod(expected[i])) << "step " << i + 1;
  EXPECT_LT(std::stod(expected.back()), std::stod(expected.front()));
}

}  // namespace
}  // namespace sextant
