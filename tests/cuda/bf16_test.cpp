// Runs in bf16 on the GPU beside the CPU's emulation of them: losses with every optimizer, checkpoints in between.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <tuple>

#include "exec/cuda/runtime/cuda_executor.h"
#include "train/scratch_run.h"

namespace sextant {
namespace {

MakeExecutor bf16_ranks() {
  return [](const RankContext& context, int) {
    return make_cuda_executor({.determinism = Determinism::repeatable}, context);
  };
}

class CudaBf16 : public testing::Test {
 protected:
  void SetUp() override {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) GTEST_SKIP() << "no CUDA device";
  }
  ScratchRun scratch_{"cuda-bf16"};

  void run(std::string_view out, const MakeExecutor& executors, std::vector<std::string> settings,
           std::string_view file = "tiny-llama.toml") {
    for (const char* setting : {"train.precision=bf16", "train.eval_every=0", "train.steps=8"})
      settings.insert(settings.begin(), setting);
    train(scratch_.config(file, std::move(settings)), scratch_.root() / out, executors);
  }

  void expect_near_losses(std::string_view a, std::string_view b) {
    std::vector<std::string> x = scratch_.losses(a), y = scratch_.losses(b);
    ASSERT_EQ(x.size(), y.size());
    for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(std::stod(x[i]), std::stod(y[i]), 3e-2) << a << " step " << i;
  }
};

TEST_F(CudaBf16, TrainsAsTheCpuDoes) {
  for (const char* file : {"tiny-llama.toml", "tiny-gpt2.toml", "tiny-moe.toml"}) {
    std::string name(file);
    run("cpu-" + name, cpu_ranks(), {}, file);
    run("gpu-" + name, bf16_ranks(), {}, file);
    expect_near_losses("gpu-" + name, "cpu-" + name);
  }
}

TEST_F(CudaBf16, EveryOptimizerStepsAsOnTheCpu) {
  for (const char* setting :
       {"optimizer.name=adamw", "optimizer.name=adafactor", "optimizer.name=lion", "optimizer.name=muon",
        "optimizer.name=sgd", "optimizer.state=bf16", "optimizer.state=int8", "train.master_weights=bf16"}) {
    std::string name(setting);
    std::vector<std::string> settings{name, "optimizer.lr=1e-4"};
    run("cpu-" + name, cpu_ranks(), settings);
    run("gpu-" + name, bf16_ranks(), settings);
    expect_near_losses("gpu-" + name, "cpu-" + name);
  }
}

// Files hold whole f32 weights: what one device has saved, the other resumes from.
TEST_F(CudaBf16, CheckpointsMoveBetweenTheDevices) {
  run("gpu", bf16_ranks(), {"checkpoint.every=4"});
  run("cpu", cpu_ranks(), {"checkpoint.every=4"});
  for (auto [name, executors, from] : {std::tuple{"gpu-then-cpu", cpu_ranks(), "gpu"},
                                       {"cpu-then-gpu", bf16_ranks(), "cpu"},
                                       {"gpu-again", bf16_ranks(), "gpu"}})
    run(name, executors, {"checkpoint.resume=" + (scratch_.root() / from / "step-000004").string()});
  std::vector<std::string> whole = scratch_.losses("gpu"), again = scratch_.losses("gpu-again");
  EXPECT_EQ(again, std::vector<std::string>(whole.begin() + 4, whole.end()));
  expect_near_losses("gpu-then-cpu", "gpu-again");
  expect_near_losses("cpu-then-gpu", "gpu-again");
}

}  // namespace
}  // namespace sextant
