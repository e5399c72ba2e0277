// Every architecture of models.def, trained for real: on a mesh with pipeline stages, saved, resumed on another mesh,
// with the losses of one rank.
#include <gtest/gtest.h>

#include <cmath>

#include "mesh_cases.h"
#include "models/models.h"
#include "scratch_run.h"

namespace sextant {
namespace {

class EveryArchitecture : public testing::TestWithParam<const ModelDef*> {};

INSTANTIATE_TEST_SUITE_P(Models, EveryArchitecture, testing::ValuesIn(all_models().begin(), all_models().end()),
                         [](const auto& info) { return std::string(info.param->name); });

TEST_P(EveryArchitecture, TrainsOnMeshesAndResumes) {
  const ModelDef& def = *GetParam();
  ScratchRun scratch(fmt::format("arch-{}", def.name));
  auto run = [&](std::string_view out, std::vector<std::string> mesh, int steps) {
    std::vector<std::string> settings = common_settings();
    for (std::string setting :
         {fmt::format("model.architecture={}", def.name), fmt::format("model.kv_heads={}", def.free_heads ? 2 : 4),
          fmt::format("model.ffn={}", def.free_ffn ? 192 : 256), fmt::format("train.steps={}", steps),
          std::string("train.eval_every=0")})
      settings.push_back(setting);
    settings.insert(settings.end(), mesh.begin(), mesh.end());
    scratch.run(out, settings);
  };
  run("one", {}, 6);
  run("mesh", {"mesh.dp=2", "mesh.tp=2", "mesh.pp=2"}, 3);
  run("mesh", {"mesh.dp=2", "mesh.zero=3", "mesh.tp=2", "mesh.sequence_parallel=true"}, 6);
  std::vector<std::string> expected = scratch.losses("one"), got = scratch.losses("mesh");
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(std::stod(got[i]), std::stod(expected[i]), 2e-5 * std::stod(expected[i])) << "step " << i + 1;
  EXPECT_LT(std::stod(expected.back()), std::stod(expected.front()));
}

}  // namespace
}  // namespace sextant
