// Which checkpoints stay: by a rule on a list, and in the directory of a run.
#include "train/save/retention.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "scratch_run.h"
#include "train/save/run_checkpoint.h"

namespace sextant {
namespace {

using KeptSteps = std::vector<int64_t>;

// Checkpoints of steps 10, 20, … with these validation losses; below 0: none was measured.
std::vector<RatedCheckpoint> rated(std::initializer_list<double> losses) {
  std::vector<RatedCheckpoint> all;
  for (double loss : losses)
    all.push_back({{static_cast<int64_t>(all.size() + 1) * 10, {}}, loss < 0 ? std::nullopt : std::optional(loss)});
  return all;
}

KeptSteps kept(const std::vector<RatedCheckpoint>& all, const CheckpointSection& keep, int64_t last_finite = -1) {
  KeptSteps steps;
  for (const RatedCheckpoint& one : all) steps.push_back(one.checkpoint.step);
  for (const Checkpoint& gone : superfluous_checkpoints(all, keep, last_finite)) std::erase(steps, gone.step);
  return steps;
}

TEST(Retention, KeepsTheLast) {
  auto all = rated({-1, -1, -1, -1, -1});
  EXPECT_EQ(kept(all, {.keep = 2}), (KeptSteps{40, 50}));
  EXPECT_EQ(kept(all, {.keep = 7}), (KeptSteps{10, 20, 30, 40, 50}));
  EXPECT_EQ(kept(all, {.keep = 0}), (KeptSteps{10, 20, 30, 40, 50}));
}

TEST(Retention, KeepsEverySoMany) {
  EXPECT_EQ(kept(rated({-1, -1, -1, -1, -1, -1}), {.keep = 1, .keep_every = 20}), (KeptSteps{20, 40, 60}));
  EXPECT_EQ(kept(rated({-1, -1, -1, -1, -1, -1}), {.keep = 2, .keep_every = 30}), (KeptSteps{30, 50, 60}));
}

TEST(Retention, KeepsTheBestAndOfEqualsTheNewest) {
  EXPECT_EQ(kept(rated({1.5, 1.2, 1.9, 1.2, 2.0}), {.keep = 1, .keep_best = 1}), (KeptSteps{40, 50}));
  EXPECT_EQ(kept(rated({1.5, 1.2, 1.9, 1.2, 2.0}), {.keep = 1, .keep_best = 2}), (KeptSteps{20, 40, 50}));
  EXPECT_EQ(kept(rated({-1, 1.2, -1, -1, 0.1}), {.keep = 1, .keep_best = 3}), (KeptSteps{20, 50}));
}

TEST(Retention, NeverRemovesTheLastFiniteOne) {
  EXPECT_EQ(kept(rated({-1, -1, -1, -1}), {.keep = 1}, 20), (KeptSteps{20, 40}));
}

TEST(Retention, ARunKeepsItsBest) {
  ScratchRun scratch("retention");
  std::vector<std::string> settings{"model.architecture=llama",
                                    "model.layers=1",
                                    "model.hidden=32",
                                    "model.heads=2",
                                    "model.ffn=64",
                                    "batch.sequences=2",
                                    "batch.seq=16",
                                    "train.threads=1",
                                    "train.steps=6",
                                    "train.eval_every=1",
                                    "train.eval_sequences=2",
                                    "data.tokenizer_vocab=300",
                                    "data.stories_bytes=60000",
                                    "optimizer.lr=0.01",
                                    "optimizer.schedule=constant",
                                    "checkpoint.every=1",
                                    "checkpoint.keep=1",
                                    "checkpoint.keep_every=4",
                                    "checkpoint.keep_best=1",
                                    fmt::format("data.cache={}", (scratch.root() / "cache").string())};
  auto stays = [&] {
    KeptSteps found;
    for (const Checkpoint& one : list_checkpoints(scratch.root() / "run")) found.push_back(one.step);
    return found;
  };
  train(load_config("", settings), scratch.root() / "run", cpu_ranks());
  EXPECT_EQ(stays(), (KeptSteps{4, 6}));                                 // the loss falls: the last is the best
  settings.insert(settings.end(), {"train.steps=9", "optimizer.lr=3"});  // and now it rises
  train(load_config("", settings), scratch.root() / "run", cpu_ranks());
  EXPECT_EQ(stays(), (KeptSteps{4, 6, 8, 9}));
  EXPECT_LT(*read_run_state(checkpoint_path(scratch.root() / "run", 6)).validation_loss,
            *read_run_state(checkpoint_path(scratch.root() / "run", 9)).validation_loss);
}

}  // namespace
}  // namespace sextant
