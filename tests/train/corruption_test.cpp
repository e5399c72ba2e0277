// Silent corruption, planted: a bit of a product's result, of a message, of a microbatch. It is found in its step, the
// rank that is wrong is named, and what the checks leave alone has the same bits as without them.
#include <gtest/gtest.h>

#include "corrupted_run.h"

namespace sextant {
namespace {

TEST_F(Corrupted, AProductIsFoundAndItsRankNamed) {
  expect_found({"train.check_gemms=1"}, "flip_gemm@3", 0, "gemm");
  // Other seeds draw other products: forward, gradients of inputs and weights, the head.
  for (int seed : {2, 3, 4, 5})
    expect_found({"train.check_gemms=1", fmt::format("train.seed={}", seed), "mesh.dp=2"}, "flip_gemm@3:1", 1, "gemm");
  expect_found({"train.check_gemms=1", "mesh.tp=2", "mesh.pp=2", "train.seed=8"}, "flip_gemm@3:3", 3, "gemm");
  for (int seed : {1, 2, 3})
    expect_found({"train.check_gemms=1", fmt::format("train.seed={}", seed)}, "flip_gemm@3", 0, "gemm",
                 "tiny-moe.toml");
}

TEST_F(Corrupted, AFaultThatLastsIsFoundByASmallShareOfChecks) {
  Found found = run({"train.check_gemms=0.2", "train.steps=100"}, "flip_gemm=100@3");
  EXPECT_EQ(found.code, ExitCode::corruption) << found.text;
  ASSERT_TRUE(found.event);
  EXPECT_LT(found.event->step, 60);
}

TEST_F(Corrupted, AMessageIsFoundAndItsRankNamed) {
  expect_found({"train.check_collectives=1", "mesh.dp=2"}, "flip_collective@3:1", 1, "collective");
  expect_found({"train.check_collectives=1", "mesh.dp=2", "mesh.overlap=false"}, "flip_collective@3:1", 1,
               "collective");
  expect_found({"train.check_collectives=1", "mesh.dp=2", "mesh.tp=2"}, "flip_collective@3:2", 2, "collective");
  for (const char* zero : {"mesh.zero=1", "mesh.zero=3"})
    expect_found({"train.check_collectives=1", "mesh.dp=2", zero}, "flip_collective@3:1", 1, "collective");
}

TEST_F(Corrupted, AMicrobatchIsFoundAndItsRankNamed) {
  // Two ranks: the one that answers otherwise when it is asked again. Three: a third one decides.
  expect_found({"train.check_microbatch_every=2", "mesh.dp=2"}, "flip_gemm@3:1", 1, "microbatch");
  expect_found({"train.check_microbatch_every=2", "mesh.dp=4"}, "flip_gemm@3:2", 2, "microbatch");
  expect_found({"train.check_microbatch_every=2", "mesh.dp=2", "batch.microbatch=4"}, "flip_gemm@3:0", 0, "microbatch");
  // Other seeds draw other products: those of the backward pass change no loss.
  for (int seed : {2, 3, 4, 5})
    expect_found({"train.check_microbatch_every=2", "mesh.dp=2", fmt::format("train.seed={}", seed),
                  fmt::format("mesh.zero={}", seed % 4)},
                 "flip_gemm@3:1", 1, "microbatch", seed % 2 == 0 ? "tiny-gpt2.toml" : "tiny-llama.toml");
}

TEST_F(Corrupted, ChecksChangeNothing) {
  for (const Overrides& mesh :
       {Overrides{"mesh.dp=2"}, Overrides{"mesh.dp=2", "mesh.zero=2", "model.hidden_dropout=0.1"},
        Overrides{"mesh.dp=2", "mesh.tp=2"}, Overrides{"mesh.dp=2", "mesh.pp=2"},
        Overrides{"mesh.dp=3", "batch.sequences=6"}}) {
    Found unchecked = run(mesh, "");
    std::vector<std::string> expected = scratch_.losses(last_out_), norms = scratch_.metric(last_out_, "grad_norm");
    Found checked =
        run(with(mesh, {"train.check_gemms=1", "train.check_collectives=1", "train.check_microbatch_every=1"}), "");
    EXPECT_EQ(checked.text, "") << fmt::format("{}", fmt::join(mesh, " "));
    EXPECT_EQ(expected.size(), 5u) << unchecked.text;
    EXPECT_EQ(scratch_.losses(last_out_), expected);
    EXPECT_EQ(scratch_.metric(last_out_, "grad_norm"), norms);
  }
}

TEST_F(Corrupted, NothingIsFoundInACleanRun) {
  for (const char* file : {"tiny-llama.toml", "tiny-gpt2.toml", "tiny-moe.toml"}) {
    Found found = run({"train.check_gemms=1", "train.steps=12"}, "", file);
    EXPECT_EQ(found.text, "") << file;
  }
  Found fp8 = run({"train.check_gemms=1", "train.precision=fp8", "train.steps=5"}, "");
  EXPECT_EQ(fp8.text, "");
}

TEST_F(Corrupted, WhatCannotBeCheckedIsRefused) {
  auto refusal = [&](const Overrides& more, const std::string& fault) {
    try {
      run(more, fault);
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(refusal({"train.check_microbatch_every=2"}, "").find("mesh.dp of at least 2"), std::string::npos);
  EXPECT_NE(refusal({}, "flip_collective@3").find("a run with one rank has no collectives"), std::string::npos);
}

}  // namespace
}  // namespace sextant
