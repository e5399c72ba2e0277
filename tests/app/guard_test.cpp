// Guards of a run, under mpirun and between two programs: non-finite steps, damaged checkpoints, other data, a second
// run.
#include <gtest/gtest.h>

#include <fstream>

#include "base/files.h"
#include "checkout.h"
#include "expectations.h"
#include "processes.h"
#include "started_command.h"

namespace sextant {
namespace {

const std::string kMesh =
    "batch.microbatch=1 batch.seq=32 train.eval_every=0 optimizer.schedule=constant mesh.dp=2 mesh.tp=2 "
    "train.timeout_s=30 ";

class Guards : public testing::Test {
 protected:
  Guards() : place_(std::string("guard-") + testing::UnitTest::GetInstance()->current_test_info()->name()) {}
  void SetUp() override {
    if (!mpirun_works()) GTEST_SKIP() << "this build has no MPI, or there is no mpirun";
  }
  Outcome run(const std::string& settings) {
    return run_command(tiny_train(place_, kMesh + settings), under_mpirun(4));
  }

  ScratchPlace place_;
};

TEST_F(Guards, NonFiniteStepsEndTheRunUnderMpirun) {
  Outcome outcome = run("train.steps=50 optimizer.lr=1e20");
  EXPECT_EQ(outcome.code, 6) << outcome.output;
  expect_words(outcome.output, {"update skipped", "not finite for 3 steps in a row"});
  EXPECT_EQ(count_of(outcome.output, "not finite for 3 steps in a row"), 1u);
  EXPECT_FALSE(std::filesystem::exists(place_ / "run/step-000050"));
}

TEST_F(Guards, DamageAndOtherDataAreSeenUnderMpirun) {
  ASSERT_EQ(run("train.steps=4 checkpoint.every=2").code, 0);
  std::string weights = place_ / "run/step-000004/model.safetensors", content = read_file(weights);
  content[content.size() / 2] = static_cast<char>(content[content.size() / 2] ^ 1);
  std::ofstream(weights, std::ios::binary) << content;
  Outcome other = run("train.steps=5 data.stories_bytes=70000");
  EXPECT_EQ(other.code, 2) << other.output;
  expect_words(other.output, {"of this run is not what", "checkpoint.accept_changed="});
  Outcome back = run("train.steps=5");
  EXPECT_EQ(back.code, 0) << back.output;
  expect_words(back.output, {"step-000004 is damaged: model.safetensors has other content", "step-000002 (step 2)",
                             "abandoned-1", "step 5/5"});
}

TEST(Guard, ASecondRunInOnePlaceIsRefused) {
  ScratchPlace place("guard-second");
  StartedCommand first(
      fmt::format("exec {} {}", checkout::kBinary, tiny_train(place, "train.steps=1000000 train.eval_every=0")),
      place / "log");
  ASSERT_TRUE(comes_true([&] { return std::filesystem::exists(place / "run/metrics.jsonl"); })) << first.output();
  std::string config = read_file(place / "run/config.toml");
  Outcome second = run_command(tiny_train(place, "train.steps=2 train.eval_every=0"));
  EXPECT_EQ(second.code, 2) << second.output;
  expect_words(second.output, {fmt::format("another run is writing here: process {}", first.pid()), "--out"});
  EXPECT_EQ(read_file(place / "run/config.toml"), config);
  ::kill(first.pid(), SIGTERM);
  EXPECT_EQ(first.wait(), 5) << first.output();
}

}  // namespace
}  // namespace sextant
