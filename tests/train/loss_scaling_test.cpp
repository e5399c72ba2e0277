// Training with scaled losses: a scale that is a power of two changes no bit, overflows skip the step on every rank
// alike and are no divergence, and the scale goes on where a checkpoint left it.
#include <gtest/gtest.h>

#include <map>

#include "base/exit_code.h"
#include "scratch_run.h"

namespace sextant {
namespace {

using ScaleSettings = std::vector<std::string>;

ScaleSettings scale_settings(const ScaleSettings& more) {
  ScaleSettings all{"batch.seq=32",
                    "batch.microbatch=1",
                    "optimizer.lr=1e-3",
                    "optimizer.schedule=constant",
                    "train.steps=6",
                    "train.eval_every=0",
                    "train.check_replicas_every=1",
                    "checkpoint.at_end=false",
                    "model.layers=2"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

// Overflows f32 in the first steps, and fits after some halvings.
const char* const kTooLarge = "train.loss_scale.initial=1.7e38";

TEST(LossScalingRun, APowerOfTwoChangesNoBit) {
  ScratchRun scratch("scale-bits");
  scratch.run("plain", scale_settings({}));
  scratch.run("scaled", scale_settings({"train.loss_scale.initial=1024", "train.loss_scale.growth_interval=2"}));
  EXPECT_EQ(scratch.losses("scaled"), scratch.losses("plain"));
  EXPECT_EQ(scratch.metric("scaled", "grad_norm"), scratch.metric("plain", "grad_norm"));
  EXPECT_EQ(scratch.metric("scaled", "loss_scale"),
            (std::vector<std::string>{"1024.0", "1024.0", "2048.0", "2048.0", "4096.0", "4096.0"}));
  EXPECT_TRUE(scratch.metric("plain", "loss_scale").empty());
}

TEST(LossScalingRun, OverflowsAreSkippedAlikeOnEveryMesh) {
  ScratchRun scratch("scale-meshes");
  ScaleSettings common{kTooLarge, "train.loss_scale.backoff=0.0001", "train.loss_scale.growth_interval=2",
                       "train.steps=8", "train.non_finite_steps=1"};
  auto with = [&](ScaleSettings mesh) {
    mesh.insert(mesh.end(), common.begin(), common.end());
    return scale_settings(mesh);
  };
  EXPECT_EQ(scratch.run("one", with({})).outcome, ExitCode::finished);
  std::vector<std::string> scales = scratch.metric("one", "loss_scale"), losses = scratch.losses("one");
  ASSERT_EQ(scales.size(), 8u);
  // Until a step is not skipped losses are those of weights that never change.
  size_t skipped = scratch.metric("one", "update_skipped").size();
  scratch.run("still", scale_settings({"optimizer.lr=0", "train.steps=8"}));
  std::vector<std::string> still = scratch.losses("still");
  EXPECT_EQ(skipped, 5u);
  for (size_t i = 0; i <= skipped; ++i) EXPECT_EQ(losses[i], still[i]) << i;
  EXPECT_NE(losses.back(), still.back());
  const std::map<std::string, ScaleSettings> meshes{
      {"dp2_zero1", {"mesh.dp=2", "mesh.zero=1"}},
      {"tp2", {"mesh.tp=2"}},
      {"pp2", {"mesh.pp=2"}},
      {"pp2_zbv", {"mesh.pp=2", "pipeline.schedule=zbv", "pipeline.chunks=2", "model.layers=4"}},
      {"dp2_zero3", {"mesh.dp=2", "mesh.zero=3"}}};
  for (const auto& [name, mesh] : meshes) {
    scratch.run(name, with(mesh));
    EXPECT_EQ(scratch.metric(name, "loss_scale"), scales) << name;
  }
}

TEST(LossScalingRun, EndsWhereTheLeastScaleOverflows) {
  ScratchRun scratch("scale-minimum");
  TrainResult end = scratch.run("end", scale_settings({kTooLarge, "train.loss_scale.minimum=1e38",
                                                       "train.non_finite_steps=2", "train.steps=20"}));
  EXPECT_EQ(end.outcome, ExitCode::non_finite);
  EXPECT_EQ(scratch.metric("end", "loss_scale").size(), 3u);  // one above the minimum, and two at it
}

TEST(LossScalingRun, ResumesWithTheSameBits) {
  ScratchRun scratch("scale-resume");
  ScaleSettings all = scale_settings({"train.loss_scale.initial=1024", "train.loss_scale.growth_interval=2",
                                      "checkpoint.every=3", "mesh.pp=2", "mesh.dp=2", "mesh.zero=1"});
  scratch.run("whole", all);
  all.push_back("checkpoint.resume=" + (scratch.root() / "whole/step-000003").string());
  scratch.run("again", all);
  std::vector<std::string> losses = scratch.losses("whole"), scales = scratch.metric("whole", "loss_scale");
  EXPECT_EQ(scratch.losses("again"), std::vector<std::string>(losses.begin() + 3, losses.end()));
  EXPECT_EQ(scratch.metric("again", "loss_scale"), std::vector<std::string>(scales.begin() + 3, scales.end()));
}

// A run may begin to scale its losses, and end to.
TEST(LossScalingRun, IsTurnedOnAndOffBetweenStarts) {
  ScratchRun scratch("scale-turned");
  ScaleSettings three = scale_settings({"train.steps=3", "checkpoint.at_end=true"});
  scratch.run("without", three);
  three.emplace_back("train.loss_scale.initial=64");
  scratch.run("with", three);
  auto from = [&](const char* run) { return "checkpoint.resume=" + (scratch.root() / run / "step-000003").string(); };
  scratch.run("on", scale_settings({"train.loss_scale.initial=64", from("without")}));
  scratch.run("off", scale_settings({from("with")}));
  EXPECT_EQ(scratch.losses("on"), scratch.losses("off"));
}

}  // namespace
}  // namespace sextant
