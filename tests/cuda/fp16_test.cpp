// Runs in fp16 on the GPU beside the CPU's emulation of them: losses, loss scales, overflows, checkpoints in between.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/exit_code.h"
#include "exec/cuda/runtime/cuda_executor.h"
#include "train/scratch_run.h"

namespace sextant {
namespace {

MakeExecutor fp16_ranks() {
  return [](const RankContext& context, int) {
    return make_cuda_executor({.determinism = Determinism::repeatable}, context);
  };
}

class CudaFp16 : public testing::Test {
 protected:
  void SetUp() override {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) GTEST_SKIP() << "no CUDA device";
  }
  ScratchRun scratch_{"cuda-fp16"};

  TrainResult run(std::string_view out, const MakeExecutor& executors, std::vector<std::string> settings,
                  std::string_view file = "tiny-llama.toml") {
    for (const char* setting : {"train.precision=fp16", "train.eval_every=0", "train.steps=8"})
      settings.insert(settings.begin(), setting);
    return train(scratch_.config(file, std::move(settings)), scratch_.root() / out, executors);
  }

  void expect_near_losses(std::string_view a, std::string_view b) {
    std::vector<std::string> x = scratch_.losses(a), y = scratch_.losses(b);
    ASSERT_EQ(x.size(), y.size());
    for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(std::stod(x[i]), std::stod(y[i]), 2e-2) << a << " step " << i;
  }
};

TEST_F(CudaFp16, TrainsAsTheCpuDoes) {
  for (const char* file : {"tiny-llama.toml", "tiny-gpt2.toml", "tiny-moe.toml"}) {
    std::string name(file);
    run("cpu-" + name, cpu_ranks(), {}, file);
    run("gpu-" + name, fp16_ranks(), {}, file);
    expect_near_losses("gpu-" + name, "cpu-" + name);
    EXPECT_EQ(scratch_.metric("gpu-" + name, "loss_scale"), scratch_.metric("cpu-" + name, "loss_scale")) << name;
  }
}

TEST_F(CudaFp16, EveryOptimizerHasItsMasters) {
  for (const char* optimizer : {"adamw", "adafactor", "lion", "muon", "sgd"}) {
    std::string name(optimizer);
    std::vector<std::string> settings{"optimizer.name=" + name, "optimizer.lr=1e-4"};
    run("cpu-" + name, cpu_ranks(), settings);
    run("gpu-" + name, fp16_ranks(), settings);
    expect_near_losses("gpu-" + name, "cpu-" + name);
  }
  for (const char* state : {"bf16", "int8"}) {
    std::string name(state);
    run("cpu-" + name, cpu_ranks(), {"optimizer.state=" + name});
    run("gpu-" + name, fp16_ranks(), {"optimizer.state=" + name});
    expect_near_losses("gpu-" + name, "cpu-" + name);
  }
}

TEST_F(CudaFp16, OverflowsAreSkippedAlikeOnRanksThatShareTheDevice) {
  std::vector<std::string> settings{"train.loss_scale.initial=1099511627776", "train.loss_scale.backoff=0.0625",
                                    "train.loss_scale.growth_interval=2", "train.non_finite_steps=1", "train.steps=12"};
  EXPECT_EQ(run("one", fp16_ranks(), settings).outcome, ExitCode::finished);
  std::vector<std::string> scales = scratch_.metric("one", "loss_scale");
  EXPECT_GE(scratch_.metric("one", "update_skipped").size(), 2u);
  EXPECT_LT(scratch_.metric("one", "update_skipped").size(), 10u);
  for (const char* mesh : {"mesh.dp=2", "mesh.tp=2", "mesh.pp=2"}) {
    std::vector<std::string> all = settings;
    all.emplace_back(mesh);
    run(mesh, fp16_ranks(), all);
    EXPECT_EQ(scratch_.metric(mesh, "loss_scale"), scales) << mesh;
  }
}

// Files hold whole f32 weights: what one device has saved, the other resumes from.
TEST_F(CudaFp16, CheckpointsMoveBetweenTheDevices) {
  run("gpu", fp16_ranks(), {"checkpoint.every=4"});
  run("cpu", cpu_ranks(), {"checkpoint.every=4"});
  for (auto [name, executors, from] : {std::tuple{"gpu-then-cpu", cpu_ranks(), "gpu"},
                                       {"cpu-then-gpu", fp16_ranks(), "cpu"},
                                       {"gpu-again", fp16_ranks(), "gpu"}})
    run(name, executors, {"checkpoint.resume=" + (scratch_.root() / from / "step-000004").string()});
  std::vector<std::string> whole = scratch_.losses("gpu"), again = scratch_.losses("gpu-again");
  EXPECT_EQ(again, std::vector<std::string>(whole.begin() + 4, whole.end()));
  expect_near_losses("gpu-then-cpu", "gpu-again");
  expect_near_losses("cpu-then-gpu", "gpu-again");
}

}  // namespace
}  // namespace sextant
