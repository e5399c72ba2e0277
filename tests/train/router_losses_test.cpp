// The losses of routers do not depend on how the batch is cut: a mean over each sequence, and one over tokens, are the
// same of many microbatches and of one, and on every mesh. What is trained on them is the same too: the losses of later
// steps say so.
#include <gtest/gtest.h>

#include "mesh_cases.h"
#include "scratch_run.h"

namespace sextant {
namespace {

std::vector<std::string> router_settings(const std::vector<std::string>& more) {
  std::vector<std::string> settings = common_settings();
  for (const char* own : {"train.steps=5", "train.eval_every=0", "checkpoint.at_end=false", "model.experts.z_loss=0.01",
                          "model.experts.balance_loss=0.1"})
    settings.emplace_back(own);
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

void expect_same_losses(const ScratchRun& scratch, const std::string& a, const std::string& b) {
  for (const char* name : {"loss", "balance_loss", "router_z_loss", "grad_norm"}) {
    std::vector<std::string> x = scratch.metric(a, name), y = scratch.metric(b, name);
    ASSERT_EQ(x.size(), 5U) << name;
    ASSERT_EQ(y.size(), 5U) << name;
    for (size_t i = 0; i < x.size(); ++i)
      EXPECT_NEAR(std::stod(x[i]), std::stod(y[i]), 1e-4 * std::stod(x[i])) << name << " of step " << i + 1;
  }
}

TEST(RouterLosses, OfSequencesAreTheSameHoweverTheBatchIsCut) {
  ScratchRun scratch("router-losses");
  const std::string scope = "model.experts.balance_scope=sequence";
  scratch.run("one", router_settings({scope, "batch.microbatch=1"}), "tiny-moe.toml");
  const std::vector<std::vector<std::string>> cuts{
      {"batch.microbatch=8"},
      {"batch.microbatch=2", "train.recompute=full"},
      {"mesh.dp=2"},
      {"mesh.cp=2"},
      {"mesh.tp=2", "mesh.sequence_parallel=true"},
      {"mesh.pp=2", "pipeline.schedule=1f1b"},
      {"mesh.dp=2", "mesh.pp=2", "mesh.zero=3"},
  };
  for (size_t i = 0; i < cuts.size(); ++i) {
    SCOPED_TRACE(cuts[i].front());
    std::vector<std::string> settings = cuts[i];
    settings.push_back(scope);
    scratch.run(fmt::format("cut-{}", i), router_settings(settings), "tiny-moe.toml");
    expect_same_losses(scratch, "one", fmt::format("cut-{}", i));
  }
}

// All tokens that go through a layer at once: the same on meshes that share them.
TEST(RouterLosses, OfLayersAreTheSameOnMeshes) {
  ScratchRun scratch("router-layer-losses");
  const std::string scope = "model.experts.balance_scope=layer";
  scratch.run("one", router_settings({scope, "batch.microbatch=2"}), "tiny-moe.toml");
  const std::vector<std::vector<std::string>> cuts{{"mesh.dp=2"},
                                                   {"mesh.cp=2", "batch.microbatch=2"},
                                                   {"mesh.pp=2", "batch.microbatch=2"},
                                                   {"mesh.tp=2", "mesh.sequence_parallel=true", "batch.microbatch=2"}};
  for (size_t i = 0; i < cuts.size(); ++i) {
    SCOPED_TRACE(cuts[i].front());
    std::vector<std::string> settings = cuts[i];
    settings.push_back(scope);
    scratch.run(fmt::format("cut-{}", i), router_settings(settings), "tiny-moe.toml");
    expect_same_losses(scratch, "one", fmt::format("cut-{}", i));
    EXPECT_EQ(scratch.metric("one", "unused_experts"), scratch.metric(fmt::format("cut-{}", i), "unused_experts"));
  }
}

// Bit for bit, three times.
TEST(RouterLosses, RunsOfExpertsRepeat) {
  ScratchRun scratch("router-repeats");
  for (const char* out : {"a", "b", "c"})
    scratch.run(out, router_settings({"model.experts.balance_scope=sequence"}), "tiny-moe.toml");
  for (const char* out : {"b", "c"})
    for (const char* name : {"loss", "balance_loss", "router_z_loss", "grad_norm", "expert_load_entropy"})
      EXPECT_EQ(scratch.metric("a", name), scratch.metric(out, name)) << name;
}

}  // namespace
}  // namespace sextant
