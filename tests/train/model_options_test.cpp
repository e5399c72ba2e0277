// Options of models, trained for real: twenty steps on meshes with the losses of one rank, through a checkpoint and a
// change of mesh.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "mesh_cases.h"
#include "scratch_run.h"

namespace sextant {
namespace {

struct OptionCase {
  const char* name;
  std::vector<std::string> settings;
};

const OptionCase kOptionCases[] = {
    {"biases_linear",
     {"model.qkv_bias=true", "model.out_bias=true", "model.mlp_bias=true", "model.rope_scaling.type=linear",
      "model.rope_scaling.factor=4"}},
    {"yarn_window",
     {"model.rope_scaling.type=yarn", "model.rope_scaling.factor=4", "model.rope_scaling.original_max_positions=16",
      "model.window=11"}},
    {"alternating_windows", {"model.qk_norm=true", "model.window=9", "model.full_attention_every=2"}},
    {"gpt2",
     {"model.architecture=gpt2", "model.kv_heads=4", "model.activation=quick_gelu",
      "model.inverse_layer_scaling=true"}},
    {"opt_350m",
     {"model.architecture=opt", "model.kv_heads=4", "model.norm_placement=post", "model.embedding_width=40",
      "model.activation=silu"}},
    {"neox", {"model.architecture=neox", "model.kv_heads=4", "model.parallel_residual=false"}},
};

// The runs share a directory for their tokens: the data is tokenized once.
class ModelOptions : public testing::TestWithParam<OptionCase> {
 protected:
  static void SetUpTestSuite() { scratch_ = std::make_unique<ScratchRun>("model-options"); }
  static void TearDownTestSuite() { scratch_.reset(); }
  static std::unique_ptr<ScratchRun> scratch_;

  std::vector<double> losses_of(std::string_view out) {
    std::vector<double> losses;
    for (const std::string& text : scratch_->losses(out)) losses.push_back(std::stod(text));
    return losses;
  }
};
std::unique_ptr<ScratchRun> ModelOptions::scratch_;

INSTANTIATE_TEST_SUITE_P(Trained, ModelOptions, testing::ValuesIn(kOptionCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(ModelOptions, StepsAreThoseOfOneRank) {
  constexpr int kSteps = 8;
  const OptionCase& c = GetParam();
  auto run = [&](const std::string& mesh, const std::vector<std::string>& axes, int steps) {
    std::vector<std::string> settings = common_settings();
    settings.insert(settings.end(), c.settings.begin(), c.settings.end());
    settings.insert(settings.end(), {fmt::format("train.steps={}", steps), "train.eval_every=0"});
    settings.insert(settings.end(), axes.begin(), axes.end());
    std::string out = fmt::format("{}-{}", c.name, mesh);
    scratch_->run(out, settings);
    return losses_of(out);
  };
  std::vector<double> expected = run("one", {}, kSteps);
  ASSERT_EQ(expected.size(), static_cast<size_t>(kSteps));
  EXPECT_LT(expected.back(), expected.front());
  std::vector<std::vector<double>> all{run("cp2_tp2", {"mesh.cp=2", "mesh.tp=2"}, kSteps)};
  run("changed", {"mesh.pp=2"}, kSteps / 2);
  all.push_back(run("changed", {"mesh.dp=2", "mesh.zero=3"}, kSteps));
  for (const std::vector<double>& got : all) {
    ASSERT_EQ(got.size(), expected.size());
    for (size_t step = 0; step < got.size(); ++step)
      EXPECT_NEAR(got[step], expected[step], 2e-5 * expected[step]) << step;
  }
}

}  // namespace
}  // namespace sextant
