// Whole runs of the tiny configs: losses fall, repeat bit for bit, and go on after a stop as if there had been none.
#include <gtest/gtest.h>

#include <csignal>
#include <thread>

#include "base/error.h"
#include "checkout.h"
#include "plan/run_plan.h"
#include "run/resolve_spec.h"
#include "scratch_run.h"
#include "targets/cpu/cpu_target.h"
#include "train/data/dataset.h"

namespace sextant {
namespace {

TEST(Train, LossFallsAndRepeatsBitForBit) {
  ScratchRun scratch("repeat");
  for (const char* file : {"tiny-llama.toml", "tiny-gpt2.toml"}) {
    scratch.run("a", {}, file);
    scratch.run("b", {}, file);
    std::vector<std::string> losses = scratch.losses("a");
    ASSERT_EQ(losses.size(), 10u);
    EXPECT_LT(std::stod(losses.back()), std::stod(losses.front()) - 0.2);
    EXPECT_EQ(losses, scratch.losses("b"));
    std::filesystem::remove_all(scratch.root() / "a");
    std::filesystem::remove_all(scratch.root() / "b");
  }
}

TEST(Train, ResumeIsBitIdentical) {
  ScratchRun scratch("resume");
  std::vector<std::string> settings{"train.steps=8", "checkpoint.every=3"};
  scratch.run("whole", settings);
  // Stops after the checkpoint of step 3, with the schedule of all eight steps.
  scratch.run("parts", settings);
  for (int step : {6, 8}) std::filesystem::remove_all(scratch.root() / "parts" / fmt::format("step-{:06}", step));
  TrainResult result = scratch.run("parts", settings);
  EXPECT_EQ(result.step, 8);
  EXPECT_EQ(scratch.losses("parts"), scratch.losses("whole"));
  for (const char* file : {"model.safetensors", "optimizer.safetensors", "run_state.json"})
    EXPECT_EQ(read_file(scratch.root() / "parts/step-000008" / file),
              read_file(scratch.root() / "whole/step-000008" / file))
        << file;
}

// More batches than there are make no sample count twice.
TEST(Train, ASmallValidationSetIsMeasuredOnce) {
  ScratchRun scratch("eval-once");
  for (const char* sequences : {"300", "301"})
    scratch.run(sequences, {"train.steps=1", "optimizer.warmup=0", "train.eval_every=1",
                            fmt::format("train.eval_sequences={}", sequences), "checkpoint.at_end=false"});
  ASSERT_FALSE(scratch.metric("300", "validation_loss").empty());
  EXPECT_EQ(scratch.metric("300", "validation_loss"), scratch.metric("301", "validation_loss"));
}

TEST(Train, MicrobatchesDoNotChangeTheLoss) {
  ScratchRun scratch("accumulate");
  scratch.run("one", {"batch.microbatch=8", "train.steps=4"});
  scratch.run("four", {"batch.microbatch=2", "train.steps=4"});
  std::vector<std::string> one = scratch.losses("one"), four = scratch.losses("four");
  ASSERT_EQ(one.size(), four.size());
  for (size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(std::stod(one[i]), std::stod(four[i]), 1e-5 * std::stod(one[i]));
}

// More losses than an executor keeps on their way.
TEST(Train, NorDoVeryManyMicrobatches) {
  ScratchRun scratch("many");
  std::vector<std::string> common{"train.steps=1", "train.eval_every=0", "optimizer.warmup=0", "batch.sequences=1200",
                                  "batch.seq=4"};
  auto loss = [&](const std::string& microbatch) {
    std::vector<std::string> settings = common;
    settings.push_back("batch.microbatch=" + microbatch);
    scratch.run("run-" + microbatch, settings);
    return std::stod(scratch.losses("run-" + microbatch)[0]);
  };
  EXPECT_NEAR(loss("1"), loss("300"), 1e-5);
}

TEST(Train, RecomputeDoesNotChangeTheLossAndPlanTellsTheBytes) {
  ScratchRun scratch("recompute");
  std::vector<std::string> reference;
  int64_t before = 0;
  for (const char* mode : {"none", "selective", "full"}) {
    std::string setting = fmt::format("train.recompute={}", mode);
    scratch.run(mode, {setting, "train.steps=3", "batch.microbatch=8"});
    if (reference.empty()) reference = scratch.losses(mode);
    EXPECT_EQ(scratch.losses(mode), reference) << mode;

    RunConfig run = scratch.config("tiny-llama.toml", {setting, "train.steps=3", "batch.microbatch=8"});
    RunPlan plan = make_plan({.run = run, .lowered = lower_run(run, resolve_spec(run), cpu_target(2))});
    std::string metrics = read_file(scratch.root() / mode / "metrics.jsonl");
    EXPECT_NE(metrics.find(fmt::format("\"arena_bytes\":{}", plan.peak_bytes)), std::string::npos) << mode;
    if (before > 0) {
      EXPECT_LT(plan.peak_bytes, before) << mode;
    }
    before = plan.peak_bytes;
  }
}

TEST(Train, StartsFromAHuggingFaceDirectory) {
  ScratchRun scratch("from");
  scratch.run("first", {"train.steps=5"});
  std::string from = fmt::format("model.from={}", (scratch.root() / "first/step-000005").string());
  RunConfig run =
      load_config("", std::vector<std::string>{from, "data.train=stories", "data.stories_bytes=60000", "batch.seq=64",
                                               "train.steps=2", "optimizer.lr=1e-3",
                                               fmt::format("data.cache={}", (scratch.root() / "cache").string())});
  TrainResult result = train(run, scratch.root() / "second", cpu_ranks());
  EXPECT_LT(result.loss, std::stod(scratch.losses("first").front()));
}

// transformers loads the checkpoint as it is and measures the loss that our last evaluation step would.
TEST(Train, TransformersLoadsWhatWasTrained) {
  std::filesystem::path python = std::filesystem::path(checkout::kSources) / "build/peers/bin/python";
  if (!std::filesystem::exists(python)) GTEST_SKIP() << "scripts/peers has not been run";
  ScratchRun scratch("peer");
  for (const char* file : {"tiny-llama.toml", "tiny-gpt2.toml"}) {
    std::vector<std::string> settings{"train.steps=4", "train.eval_every=4", "train.eval_sequences=1",
                                      "batch.microbatch=1", "batch.sequences=4"};
    TrainResult result = scratch.run(file, settings, file);
    RunConfig run = scratch.config(file, settings);
    ThreadTeam team(1);
    Dataset data = open_dataset(run, resolve_spec(run), team, [](std::string_view) {});
    std::vector<int32_t> tokens(64), targets(64);
    data.validation->fill(0, 1, tokens, targets);
    std::string ids = (scratch.root() / "ids.json").string(), out = (scratch.root() / "out.json").string();
    write_file_atomically(ids, fmt::format("{{\"input_ids\": [[{}]], \"targets\": [[{}]]}}", fmt::join(tokens, ", "),
                                           fmt::join(targets, ", ")));
    std::string command = fmt::format("{} {}/tests/peers/model_peer.py loss {} {} > {}", python.string(),
                                      checkout::kSources, result.checkpoint.string(), ids, out);
    ASSERT_EQ(std::system(command.c_str()), 0);
    std::string answer = read_file(out);
    double theirs = std::stod(answer.substr(answer.find("\"loss\":") + 7));
    EXPECT_NEAR(theirs, *result.validation_loss, 1e-5 * theirs) << file;
  }
}

TEST(Train, StopSignalSavesAndResumeGoesOn) {
  ScratchRun scratch("stop");
  std::thread interrupter([&] {
    while (!std::filesystem::exists(scratch.root() / "run/metrics.jsonl"))
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    std::raise(SIGINT);
  });
  TrainResult result = scratch.run("run", {"train.steps=100000", "optimizer.warmup=2"});
  interrupter.join();
  EXPECT_EQ(result.outcome, ExitCode::stopped);
  EXPECT_GE(result.step, 1);
  EXPECT_TRUE(std::filesystem::exists(result.checkpoint / "run_state.json"));
}

TEST(Train, RefusesWhatItCannotDo) {
  ScratchRun scratch("refuse");
  EXPECT_THROW(scratch.run("x", {"mesh.tp=3"}), UserError);                           // heads do not divide
  EXPECT_THROW(scratch.run("x", {"mesh.pp=5"}), UserError);                           // fewer layers than stages
  EXPECT_THROW(scratch.run("x", {"mesh.pp=2", "pipeline.schedule=zbv"}), UserError);  // needs two chunks
  EXPECT_THROW(scratch.run("x", {"mesh.zero_ranks=2"}), UserError);                   // without ZeRO
  EXPECT_THROW(scratch.run("x", {"mesh.pp=2", "pipeline.layers='2,1'"}), UserError);  // three layers, there are two
}

}  // namespace
}  // namespace sextant
