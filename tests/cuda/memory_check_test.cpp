// Checksums of weights and optimizer states on a GPU: a bit that is flipped between steps is found before the next
// step's numbers are known, and its tensor named; clean runs raise nothing and have the bits of unchecked ones.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include "exec/cuda/runtime/cuda_executor.h"
#include "train/corrupted_run.h"

namespace sextant {
namespace {

class MemoryCheckOnCuda : public Corrupted {
 protected:
  MemoryCheckOnCuda()
      : Corrupted([](const RankContext& context, int) {
          return make_cuda_executor({.determinism = Determinism::repeatable}, context);
        }) {}
  void SetUp() override {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) GTEST_SKIP() << "no CUDA device";
  }

  static std::vector<Overrides> cases() {
    std::vector<Overrides> all;
    for (const char* precision : {"f32", "bf16", "fp16", "fp8"})
      all.push_back({fmt::format("train.precision={}", precision)});
    for (const char* more : {"optimizer.state=int8", "optimizer.state=bf16", "optimizer.name=lion",
                             "optimizer.name=muon", "optimizer.name=adafactor", "mesh.dp=2", "model.hidden=40"})
      all.push_back({"train.precision=bf16", more});
    all.push_back({"train.precision=bf16", "mesh.dp=2", "mesh.zero=1"});
    all.push_back({"train.precision=bf16", "mesh.dp=2", "mesh.zero=3"});
    all.push_back({"train.precision=bf16", "mesh.tp=2"});
    for (Overrides& one : all) one = with(one, {"train.deterministic=true", "batch.seq=64"});
    return all;
  }
};

TEST_F(MemoryCheckOnCuda, AFlippedBitIsFoundAndItsTensorNamed) {
  int draw = 0;
  for (const Overrides& settings : cases()) {
    for (int turn = 0; turn < 3; ++turn) {
      std::string fault = fmt::format("flip_memory={}@3", ++draw);
      Found found = run(with(settings, {"train.check_memory=true", "train.steps=8"}), fault);
      SCOPED_TRACE(fmt::format("{} with {}: {}", fault, fmt::join(settings, " "), found.text));
      EXPECT_EQ(found.code, ExitCode::corruption);
      ASSERT_TRUE(found.event);
      // The host may be a step ahead when it learns of it.
      EXPECT_GE(found.event->step, 3);
      EXPECT_LE(found.event->step, 4);
      EXPECT_EQ(found.event->details.integer("rank"), 0);
      EXPECT_NE(event_line(*found.event).find("\"check\":\"memory\""), std::string::npos);
      EXPECT_NE(found.text.find("of a 32-bit word, which was"), std::string::npos);
      EXPECT_LE(scratch_.losses(last_out_).size(), 2u) << "step 3 does not count";
    }
  }
}

TEST_F(MemoryCheckOnCuda, CleanRunsRaiseNothingAndHaveTheSameBits) {
  for (const Overrides& settings : cases()) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(settings, " ")));
    run(with(settings, {"train.steps=6"}), "");
    std::vector<std::string> expected = scratch_.losses(last_out_);
    Found found = run(with(settings, {"train.check_memory=true", "train.steps=6"}), "");
    EXPECT_EQ(found.text, "");
    EXPECT_EQ(expected.size(), 6u);
    EXPECT_EQ(scratch_.losses(last_out_), expected);
  }
}

// An update that is skipped leaves states and checksums as they are.
TEST_F(MemoryCheckOnCuda, SkippedStepsRaiseNothing) {
  Found found = run({"train.check_memory=true", "train.precision=bf16", "train.steps=6"}, "nan@3");
  EXPECT_EQ(found.text, "");
  EXPECT_EQ(scratch_.losses(last_out_).size(), 6u);
}

}  // namespace
}  // namespace sextant
