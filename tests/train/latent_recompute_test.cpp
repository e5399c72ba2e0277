// train.recompute=latent: what is trained is the same bit for bit, and memory is saved, as planned.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "mesh_cases.h"
#include "passes/memory.h"
#include "run/programs.h"
#include "run/resolve_spec.h"
#include "scratch_run.h"
#include "targets/cpu/cpu_target.h"

namespace sextant {
namespace {

// Narrow rows, and heads that are wide together, as in the released models.
std::vector<std::string> latent_settings(const std::string& recompute, const std::vector<std::string>& more) {
  std::vector<std::string> settings = common_settings();
  for (const char* own :
       {"model.architecture=deepseek_v3", "model.experts.count=8", "model.experts.per_token=2", "model.experts.ffn=16",
        "model.experts.groups=1", "model.experts.keep_groups=1", "model.experts.group_top=1", "model.heads=8",
        "model.kv_heads=8", "model.head_dim=24", "model.latent.q_rank=16", "model.latent.kv_rank=8",
        "model.latent.rope_dim=8", "model.latent.value_dim=16", "model.experts.shared_ffn=16", "train.steps=4",
        "train.eval_every=0", "batch.microbatch=4"})
    settings.emplace_back(own);
  settings.push_back(fmt::format("train.recompute={}", recompute));
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

TEST(LatentRecompute, TrainsTheSameBitForBit) {
  ScratchRun scratch("latent-recompute");
  const std::vector<MeshCase> meshes{
      {"one", {}},
      {"tp2_sp", {"mesh.tp=2", "mesh.sequence_parallel=true"}},
      {"dp2_ep2_zero3", {"mesh.dp=2", "mesh.ep=2", "mesh.zero=3"}},
      {"cp2", {"mesh.cp=2"}},
  };
  for (const MeshCase& mesh : meshes) {
    std::string saved = fmt::format("{}-none", mesh.name), again = fmt::format("{}-latent", mesh.name);
    scratch.run(saved, latent_settings("none", mesh.settings), "tiny-moe.toml");
    scratch.run(again, latent_settings("latent", mesh.settings), "tiny-moe.toml");
    EXPECT_EQ(scratch.losses(again), scratch.losses(saved)) << mesh.name;
    EXPECT_EQ(scratch.metric(again, "grad_norm"), scratch.metric(saved, "grad_norm")) << mesh.name;
    EXPECT_EQ(read_file(scratch.root() / again / "step-000004/model.safetensors"),
              read_file(scratch.root() / saved / "step-000004/model.safetensors"))
        << mesh.name;
  }
}

// Which weight gradients wait for their W changes when they are computed, and no bit of them.
TEST(LatentRecompute, TrainsTheSameWithFewerDeferredGradients) {
  ScratchRun scratch("latent-deferred");
  for (const char* schedule : {"dualpipev", "dualpipe"}) {
    auto run = [&](const std::string& deferred) {
      std::string name = fmt::format("{}-{}", schedule, deferred);
      std::vector<std::string> mesh{"mesh.pp=2",
                                    "mesh.dp=2",
                                    "mesh.ep=2",
                                    "mesh.zero=1",
                                    "pipeline.chunks=2",
                                    fmt::format("pipeline.schedule={}", schedule),
                                    "pipeline.deferred_gradients=" + deferred,
                                    "batch.sequences=16",
                                    "batch.microbatch=1"};
      scratch.run(name, latent_settings("latent", mesh), "tiny-moe.toml");
      return name;
    };
    std::string all = run("all"), cheap = run("cheap");
    EXPECT_EQ(scratch.losses(cheap), scratch.losses(all)) << schedule;
    EXPECT_EQ(read_file(scratch.root() / cheap / "step-000004/model.safetensors"),
              read_file(scratch.root() / all / "step-000004/model.safetensors"))
        << schedule;
  }
}

// For every token and layer the packed heads of queries, keys and values are not saved.
TEST(LatentRecompute, SavesTheHeads) {
  ScratchRun scratch("latent-memory");
  auto arena = [&](const char* mode) {
    RunConfig run = scratch.config("tiny-moe.toml", latent_settings(mode, {"batch.microbatch=8"}));
    ModelSpec spec = resolve_spec(run);
    return build_programs(run, run_shape(run, spec), cpu_target(1)).arena_bytes(0);
  };
  const int64_t tokens = 8 * 32, layers = 4, packed = 8 * (24 + 24 + 16);
  int64_t heads = tokens * layers * packed * 4;
  int64_t saved = arena("selective") - arena("latent");
  // While one layer's backward runs, its own are there again.
  EXPECT_GE(saved, heads * (layers - 1) / layers * 9 / 10);
  EXPECT_LE(saved, heads);
}

}  // namespace
}  // namespace sextant
