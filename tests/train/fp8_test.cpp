// Training in fp8, emulated: the same on every mesh, near training without it, resumed exactly.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "base/error.h"
#include "mesh_cases.h"
#include "same_training.h"
#include "scratch_run.h"

namespace sextant {
namespace {

// Scales are the same on every mesh, but sums have other orders there: a number that lies between two of fp8 may then
// be rounded to the other, which is a change in its third bit. Over few steps losses agree to this.
constexpr double kTolerance = 2e-4;

std::vector<std::string> fp8_settings(const char* recipe, const MeshCase& mesh) {
  std::vector<std::string> settings = common_settings();
  for (const char* more : {"train.steps=6", "train.eval_every=6", "train.fp8_skip=1"}) settings.emplace_back(more);
  settings.push_back(std::string("train.precision=") + recipe);
  settings.insert(settings.end(), mesh.settings.begin(), mesh.settings.end());
  return settings;
}

void expect_near_losses(const std::vector<std::string>& got, const std::vector<std::string>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(loss_at(got, i), loss_at(expected, i), kTolerance * loss_at(expected, i)) << "step " << i + 1;
}

class Fp8OnMeshes : public testing::TestWithParam<MeshCase> {
 protected:
  static ScratchRun& scratch() {
    static ScratchRun run("fp8-meshes");
    return run;
  }
};

// One scale for the whole value: the ranks that split a batch take it from all of that batch, so one rank takes as many
// sequences at once.
TEST_P(Fp8OnMeshes, TrainsAsOneRankDoes) {
  const MeshCase& mesh = GetParam();
  int64_t at_once = 1;
  for (const std::string& setting : mesh.settings)
    if (setting == "mesh.dp=2") at_once = 2;
  std::string one = fmt::format("one-{}", at_once);
  if (!std::filesystem::exists(scratch().root() / one))
    scratch().run(one, fp8_settings("fp8", {"one", {fmt::format("batch.microbatch={}", at_once)}}));
  scratch().run(mesh.name, fp8_settings("fp8", mesh));
  expect_near_losses(scratch().losses(mesh.name), scratch().losses(one));
  double validation = std::stod(scratch().metric(one, "validation_loss").back());
  EXPECT_NEAR(std::stod(scratch().metric(mesh.name, "validation_loss").back()), validation, kTolerance * validation);
}

std::vector<MeshCase> fp8_meshes() {
  return {{"tp2", {"mesh.tp=2"}},
          {"tp2_sp", {"mesh.tp=2", "mesh.sequence_parallel=true"}},
          {"cp2", {"mesh.cp=2"}},
          {"zero3_dp2", {"mesh.dp=2", "mesh.zero=3"}},
          {"zero3_dp2_tp2_full", {"mesh.dp=2", "mesh.zero=3", "mesh.tp=2", "train.recompute=full"}},
          {"pp2", {"mesh.pp=2"}},
          {"pp2_zb_h1", {"mesh.pp=2", "pipeline.schedule=zb-h1"}},
          {"zero3_dp2_tp2_sp_combined",
           {"mesh.dp=2", "mesh.tp=2", "mesh.sequence_parallel=true", "mesh.zero=3", "pipeline.schedule=combined-1f1b"}},
          {"pp2_zero3_dp2_dualpipev",
           {"mesh.pp=2", "mesh.dp=2", "mesh.zero=3", "pipeline.schedule=dualpipev", "pipeline.chunks=2"}}};
}
INSTANTIATE_TEST_SUITE_P(Meshes, Fp8OnMeshes, testing::ValuesIn(fp8_meshes()),
                         [](const auto& info) { return std::string(info.param.name); });

// Tiles of 128 that no rank cuts.
TEST(Fp8Blocks, TrainAlikeWhereNoRankCutsThem) {
  ScratchRun scratch("fp8-blocks");
  auto settings = [](const MeshCase& mesh) {
    std::vector<std::string> all = fp8_settings("fp8-block", mesh);
    for (const char* more :
         {"model.layers=2", "model.hidden=256", "model.ffn=256", "model.heads=4", "model.kv_heads=4", "batch.seq=256",
          "batch.sequences=2", "train.steps=3", "train.eval_every=0", "train.fp8_skip=0", "train.precision=fp8-block"})
      all.emplace_back(more);
    return all;
  };
  scratch.run("one", settings({"one", {}}));
  for (const MeshCase& mesh : {MeshCase{"tp2", {"mesh.tp=2"}}, MeshCase{"zero3", {"mesh.dp=2", "mesh.zero=3"}},
                               MeshCase{"pp2", {"mesh.pp=2"}}}) {
    SCOPED_TRACE(mesh.name);
    scratch.run(mesh.name, settings(mesh));
    expect_near_losses(scratch.losses(mesh.name), scratch.losses("one"));
  }
}

double mean_of_last(const std::vector<std::string>& losses, size_t count) {
  double sum = 0;
  for (size_t i = losses.size() - count; i < losses.size(); ++i) sum += loss_at(losses, i);
  return sum / static_cast<double>(count);
}

TEST(Fp8Training, LearnsAsWellAsWideTrainingDoes) {
  ScratchRun scratch("fp8-learns");
  std::map<std::string, double> at_end;
  double first = 0;
  for (const char* precision : {"f32", "fp8", "fp8-block"}) {
    scratch.run(precision, {"batch.microbatch=8", "train.steps=60", "train.eval_every=0",
                            std::string("train.precision=") + precision});
    std::vector<std::string> losses = scratch.losses(precision);
    first = loss_at(losses, 0);
    at_end[precision] = mean_of_last(losses, 20);
  }
  EXPECT_LT(at_end["f32"], 0.8 * first);
  for (const char* precision : {"fp8", "fp8-block"}) {
    EXPECT_NEAR(at_end[precision], at_end["f32"], 0.02 * at_end["f32"]) << precision;
    EXPECT_NE(at_end[precision], at_end["f32"]) << precision << " is not computed in fp8";
  }
}

// One step of SGD from the same weights: how far each weight moves is its gradient. Those of rounded operands point
// where the wide ones do.
TEST(Fp8Training, GradientsPointWhereWideOnesDo) {
  ScratchRun scratch("fp8-gradients");
  auto step = [&](const char* out, const char* precision, const char* lr) {
    scratch.run(out, {"optimizer.name=sgd", "optimizer.weight_decay=0", "optimizer.warmup=0", "optimizer.clip=0",
                      "optimizer.schedule=constant", "train.steps=1", "train.eval_every=0",
                      std::string("optimizer.lr=") + lr, std::string("train.precision=") + precision});
    return WeightsReader(scratch.root() / out / "step-000001");
  };
  WeightsReader start = step("start", "f32", "0"), wide = step("wide", "f32", "1");
  for (const char* precision : {"fp8", "fp8-block"}) {
    WeightsReader narrow = step(precision, precision, "1");
    double least = 1;
    for (const std::string& name : start.names()) {
      auto numbers = [&](const WeightsReader& reader) {
        TensorView view = reader.tensor(name);
        const float* x = reinterpret_cast<const float*>(view.bytes.data());
        return std::vector<double>(x, x + view.bytes.size() / sizeof(float));
      };
      std::vector<double> w = numbers(start), a = numbers(wide), b = numbers(narrow);
      double ab = 0, aa = 0, bb = 0;
      for (size_t i = 0; i < w.size(); ++i)
        ab += (a[i] - w[i]) * (b[i] - w[i]), aa += (a[i] - w[i]) * (a[i] - w[i]), bb += (b[i] - w[i]) * (b[i] - w[i]);
      least = std::min(least, ab / std::sqrt(aa * bb));
    }
    EXPECT_GT(least, 0.99) << precision;
    EXPECT_LT(least, 0.99999) << precision << " is not computed in fp8";
  }
}

// Nothing of fp8 is kept between steps: a run that stops and goes on is the run that did not stop, bit for bit.
TEST(Fp8Training, IsResumedExactly) {
  ScratchRun scratch("fp8-resume");
  auto settings = [](int steps) {
    return std::vector<std::string>{"train.precision=fp8", fmt::format("train.steps={}", steps), "train.eval_every=0",
                                    "optimizer.schedule=constant"};
  };
  scratch.run("whole", settings(4));
  scratch.run("resumed", settings(2));
  scratch.run("resumed", settings(4));
  EXPECT_EQ(scratch.losses("resumed"), scratch.losses("whole"));
}

// 17 tokens are no size for fp8 units, so every product stays wide, and the run is refused rather than mislabelled.
TEST(Fp8Training, IsRefusedWhereNothingWouldBeInFp8) {
  ScratchRun scratch("fp8-none");
  for (const char* setting : {"batch.seq=17", "train.fp8_skip=1"}) {
    try {
      scratch.run("refused", {"train.precision=fp8", "batch.microbatch=1", setting});
      ADD_FAILURE() << setting << " was taken";
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find("no product in fp8"), std::string::npos) << error.what();
    }
  }
}

TEST(Fp8Training, FormatsOfLaterDevicesAreRefused) {
  ScratchRun scratch("fp8-refused");
  for (const char* format : {"mxfp8", "nvfp4"}) {
    try {
      scratch.run("refused", {std::string("train.precision=") + format});
      ADD_FAILURE() << format << " was taken";
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find(format), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("bytes a number"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace sextant
