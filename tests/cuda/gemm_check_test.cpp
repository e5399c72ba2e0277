// Checks of GEMMs on a GPU: clean runs raise nothing in any precision, a sign that is flipped is found in its step, and
// a run without GELU that is checked has the bits of one that is not.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include "exec/cuda/runtime/cuda_executor.h"
#include "train/corrupted_run.h"

namespace sextant {
namespace {

class CorruptedOnCuda : public Corrupted {
 protected:
  CorruptedOnCuda()
      : Corrupted([](const RankContext& context, int) {
          return make_cuda_executor({.determinism = Determinism::repeatable}, context);
        }) {}
  void SetUp() override {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) GTEST_SKIP() << "no CUDA device";
  }
};

const Overrides kPrecisions{"f32", "bf16", "fp16", "fp8", "fp8-block"};

TEST_F(CorruptedOnCuda, CleanRunsRaiseNothing) {
  for (const std::string& precision : kPrecisions)
    for (const char* file : {"tiny-llama.toml", "tiny-gpt2.toml"}) {
      SCOPED_TRACE(precision + " " + file);
      Found found = run({"train.check_gemms=1", "train.deterministic=true", "train.steps=20", "batch.seq=64",
                         "train.precision=" + precision},
                        "", file);
      EXPECT_EQ(found.code, ExitCode::finished) << found.text;
      EXPECT_EQ(scratch_.losses(last_out_).size(), 20u);
    }
}

TEST_F(CorruptedOnCuda, FlippedSignIsFound) {
  for (const std::string& precision : kPrecisions)
    for (int seed = 1; seed <= 8; ++seed)
      expect_found({"train.check_gemms=1", "train.deterministic=true", "batch.seq=64", "train.precision=" + precision,
                    fmt::format("train.seed={}", seed)},
                   "flip_gemm@3", 0, "gemm", seed % 2 == 0 ? "tiny-gpt2.toml" : "tiny-llama.toml");
}

TEST_F(CorruptedOnCuda, NamesTheRank) {
  expect_found({"train.check_gemms=1", "mesh.dp=2", "train.precision=bf16"}, "flip_gemm@3:1", 1, "gemm");
}

TEST_F(CorruptedOnCuda, CheckedRunsHaveTheSameBits) {
  Overrides plain{"train.deterministic=true", "train.precision=bf16", "train.steps=10"};
  run(plain, "");
  std::vector<std::string> expected = scratch_.losses(last_out_);
  run(with(plain, {"train.check_gemms=0.3"}), "");
  EXPECT_EQ(scratch_.losses(last_out_), expected);
}

TEST_F(CorruptedOnCuda, MessagesAreNotChecked) {
  EXPECT_THROW(run({"train.check_collectives=1", "mesh.dp=2"}, ""), UserError);
  EXPECT_THROW(run({"mesh.dp=2"}, "flip_collective@3"), UserError);
}

}  // namespace
}  // namespace sextant
