// Offload on a GPU: optimizer state, master weights and activations in page-locked memory of the host, the update on
// host cores. In deterministic mode the losses are those of the run without it, bit for bit.
#include <cuda_runtime.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "exec/cuda/runtime/cuda_executor.h"
#include "nvme_here.h"
#include "train/mesh_cases.h"
#include "train/scratch_run.h"

namespace sextant {
namespace {

MakeExecutor repeatable_cuda_ranks() {
  return [](const RankContext& context, int) {
    return make_cuda_executor({.determinism = Determinism::repeatable, .host_threads = 2}, context);
  };
}

class OffloadOnCuda : public testing::Test {
 protected:
  void SetUp() override {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) GTEST_SKIP() << "no CUDA device";
  }

  void run(std::string_view out, const std::vector<std::string>& more) {
    std::vector<std::string> settings = common_settings();
    for (const char* own : {"train.deterministic=true", "checkpoint.every=10", "checkpoint.keep=0"})
      settings.emplace_back(own);
    settings.insert(settings.end(), more.begin(), more.end());
    train(scratch_.config("tiny-llama.toml", std::move(settings)), scratch_.root() / out, repeatable_cuda_ranks());
  }

  ScratchRun scratch_{"cuda-offload"};
};

TEST_F(OffloadOnCuda, LossesAreTheSameBitForBit) {
  for (const char* precision : {"train.precision=f32", "train.precision=bf16"})
    for (const char* mesh : {"mesh.dp=1", "mesh.tp=2", "mesh.pp=2"}) {
      SCOPED_TRACE(fmt::format("{} {}", precision, mesh));
      std::string name = fmt::format("{}-{}", precision, mesh);
      run("plain-" + name, {precision, mesh});
      std::vector<std::string> on{precision, mesh, "offload.optimizer=true", "offload.activations=block"};
      if (precision == std::string_view("train.precision=bf16")) on.emplace_back("offload.weights=true");
      run("offload-" + name, on);
      EXPECT_EQ(scratch_.losses("offload-" + name), scratch_.losses("plain-" + name));
      EXPECT_EQ(read_file(scratch_.root() / ("offload-" + name) / "step-000020/optimizer.safetensors"),
                read_file(scratch_.root() / ("plain-" + name) / "step-000020/optimizer.safetensors"));
    }
}

// Weights of blocks come from the host before each use, with accumulation over microbatches and beside activations that
// leave; under ZeRO-1 the gathered weight goes back down.
TEST_F(OffloadOnCuda, StreamedWeightsGiveTheSameBits) {
  for (const char* precision : {"train.precision=f32", "train.precision=bf16"})
    for (const std::vector<std::string>& mesh : {std::vector<std::string>{"mesh.dp=1"},
                                                 {"mesh.dp=2"},
                                                 {"mesh.dp=2", "mesh.zero=1"},
                                                 {"mesh.tp=2"},
                                                 {"mesh.pp=2"}}) {
      std::string name = fmt::format("{}-{}", precision, fmt::join(mesh, "-"));
      SCOPED_TRACE(name);
      std::vector<std::string> plain{precision, "batch.sequences=4", "batch.microbatch=1", "train.recompute=full",
                                     "model.layers=8"};
      plain.insert(plain.end(), mesh.begin(), mesh.end());
      std::vector<std::string> on = plain;
      for (const char* more : {"offload.optimizer=true", "offload.working_weights=true", "offload.activations=block"})
        on.emplace_back(more);
      if (precision == std::string_view("train.precision=bf16")) on.emplace_back("offload.weights=true");
      run("plain-streamed-" + name, plain);
      run("streamed-" + name, on);
      EXPECT_EQ(scratch_.losses("streamed-" + name), scratch_.losses("plain-streamed-" + name));
      for (const char* file : {"model.safetensors", "optimizer.safetensors"})
        EXPECT_EQ(read_file(scratch_.root() / ("streamed-" + name) / "step-000020" / file),
                  read_file(scratch_.root() / ("plain-streamed-" + name) / "step-000020" / file));
    }
}

// State in a file, and in bf16 the low halves of weights, which are drawn into it.
TEST_F(OffloadOnCuda, StateOnNvmeGivesTheSameBits) {
  if (auto why = why_no_nvme()) GTEST_SKIP() << *why;
  for (const char* precision : {"train.precision=f32", "train.precision=bf16"})
    for (const char* mesh : {"mesh.dp=1", "mesh.tp=2", "mesh.pp=2"}) {
      SCOPED_TRACE(fmt::format("{} {}", precision, mesh));
      std::string name = fmt::format("{}-{}", precision, mesh);
      run("plain-" + name, {precision, mesh});
      std::vector<std::string> on{precision, mesh, "offload.optimizer=true", "offload.to=nvme",
                                  "offload.path=" + nvme_directory()};
      if (precision == std::string_view("train.precision=bf16")) on.emplace_back("offload.weights=true");
      run("nvme-" + name, on);
      EXPECT_EQ(scratch_.losses("nvme-" + name), scratch_.losses("plain-" + name));
      EXPECT_EQ(read_file(scratch_.root() / ("nvme-" + name) / "step-000020/optimizer.safetensors"),
                read_file(scratch_.root() / ("plain-" + name) / "step-000020/optimizer.safetensors"));
    }
}

// Low halves that stay on the device travel down and back.
TEST_F(OffloadOnCuda, MasterWeightsMayStay) {
  run("plain", {"train.precision=bf16"});
  run("state", {"train.precision=bf16", "offload.optimizer=true"});
  EXPECT_EQ(scratch_.losses("state"), scratch_.losses("plain"));
}

TEST_F(OffloadOnCuda, ResumesAcrossIt) {
  run("whole", {});
  run("moved", {"offload.optimizer=true"});
  std::filesystem::remove_all(scratch_.root() / "moved/step-000020");
  run("moved", {});
  EXPECT_EQ(scratch_.losses("moved"), scratch_.losses("whole"));
  run("streamed", {"offload.optimizer=true", "offload.working_weights=true"});
  std::filesystem::remove_all(scratch_.root() / "streamed/step-000020");
  run("streamed", {});
  EXPECT_EQ(scratch_.losses("streamed"), scratch_.losses("whole"));
}

}  // namespace
}  // namespace sextant
