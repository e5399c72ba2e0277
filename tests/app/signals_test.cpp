// Signals that ask a run to stop: it saves first and says so by its exit code; and readers who leave a pipe do not end
// it.
#include <gtest/gtest.h>

#include "checkout.h"
#include "processes.h"
#include "started_command.h"

namespace sextant {
namespace {

const std::string kEndless =
    "model.layers=2 batch.seq=32 train.steps=1000000 train.eval_every=0 train.log_every=1000000 ";

class Signals : public testing::Test {
 protected:
  Signals() : place_(std::string("signal-") + testing::UnitTest::GetInstance()->current_test_info()->name()) {}

  std::string train(const std::string& extra) {
    return fmt::format("{} {}", checkout::kBinary, tiny_train(place_, extra));
  }
  std::string metrics() const { return place_ / "run/metrics.jsonl"; }
  bool steps_pass(size_t count) {
    size_t before = lines_in(metrics());
    return comes_true([&] { return lines_in(metrics()) >= before + count; });
  }
  // The newest checkpoint is that of the last step.
  bool saved_last_step() const {
    return std::filesystem::exists(place_ / fmt::format("run/step-{:06}/run_state.json", lines_in(metrics())));
  }

  ScratchPlace place_;
};

TEST_F(Signals, EachSaves) {
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) {
    std::filesystem::remove_all(place_.path() / "run");
    StartedCommand run("exec " + train(kEndless), place_ / "log");
    ASSERT_TRUE(steps_pass(2)) << run.output();
    run.send(signal);
    EXPECT_EQ(run.wait(), 5) << "signal " << signal << "\n" << run.output();
    EXPECT_NE(run.output().find("stopped at step"), std::string::npos) << run.output();
    EXPECT_TRUE(saved_last_step()) << "signal " << signal;
  }
}

// A terminal's end comes from the kernel and from the shell.
TEST_F(Signals, RequestsMayComeTwice) {
  StartedCommand run("exec " + train(kEndless), place_ / "log");
  ASSERT_TRUE(steps_pass(2)) << run.output();
  for (int i = 0; i < 3; ++i) {
    run.send(SIGHUP);
    run.send(SIGUSR1);
  }
  EXPECT_EQ(run.wait(), 5) << run.output();
  EXPECT_TRUE(saved_last_step());
}

TEST_F(Signals, NohupIsKept) {
  StartedCommand run("trap '' HUP; exec " + train(kEndless), place_ / "log");
  ASSERT_TRUE(steps_pass(2)) << run.output();
  run.send(SIGHUP);
  EXPECT_TRUE(steps_pass(5)) << run.output();
  run.send(SIGTERM);
  EXPECT_EQ(run.wait(), 5) << run.output();
}

TEST_F(Signals, AReaderWhoLeavesDoesNotEndTheRun) {
  std::string settings = "model.layers=2 batch.seq=32 train.steps=12 train.eval_every=0 train.log_every=1 ";
  StartedCommand run(fmt::format("set -o pipefail; {} | head -1", train(settings)), place_ / "log");
  EXPECT_EQ(run.wait(), 0) << run.output();
  EXPECT_EQ(lines_in(metrics()), 12u);
  EXPECT_TRUE(saved_last_step());
  EXPECT_EQ(count_of(run.output(), "cannot write to standard output (Broken pipe)"), 1u) << run.output();
}

// Services and some shells start programs with SIGPIPE ignored.
TEST_F(Signals, AReaderWhoLeavesIsNoMistakeOfOurs) {
  StartedCommand run(fmt::format("trap '' PIPE; {} explain {} --after freeze model.layers=16 | head -1",
                                 checkout::kBinary, config_path("tiny-llama.toml")),
                     place_ / "log");
  EXPECT_EQ(run.wait(), 0) << run.output();
  EXPECT_EQ(run.output().find("sextant:"), std::string::npos) << run.output();
}

// Time in which the run is suspended counts for nobody.
TEST_F(Signals, ASuspendedRunGoesOn) {
  StartedCommand run("exec " + train(kEndless + "mesh.pp=2 batch.sequences=1 batch.microbatch=1 train.timeout_s=2"),
                     place_ / "log");
  ASSERT_TRUE(steps_pass(2)) << run.output();
  run.send(SIGSTOP);
  std::this_thread::sleep_for(std::chrono::milliseconds(2500));
  run.send(SIGCONT);
  EXPECT_TRUE(steps_pass(5)) << run.output();
  run.send(SIGTERM);
  EXPECT_EQ(run.wait(), 5) << run.output();
}

class LauncherSignals : public Signals {
 protected:
  static constexpr const char* kAsRoot =
      "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 "
      "ASAN_OPTIONS=detect_leaks=0; ";
  void SetUp() override {
    if (!mpirun_works()) GTEST_SKIP() << "this build has no MPI, or there is no mpirun";
    std::string bound =
        fmt::format("{} {} -n 2 --map-by ppr:2:node:PE=1 --bind-to core true > /dev/null 2>&1", kAsRoot, kMpirun);
    if (std::system(bound.c_str()) != 0) GTEST_SKIP() << "there are no two cores to bind ranks to";
  }
};

// Runs the script of `launch --mpi` with messages so slow that step and save take longer than mpirun leaves its ranks.
TEST_F(LauncherSignals, TheScriptSavesBeforeItEnds) {
  Outcome script =
      run_command(fmt::format("launch --mpi {} --ranks-per-node 2 --binary {} mesh.dp=2 batch.microbatch=1 {}",
                              config_path("tiny-llama.toml"), checkout::kBinary, kEndless));
  ASSERT_EQ(script.code, 0) << script.output;
  write_file_atomically(place_ / "job.sh", script.output);
  StartedCommand run(
      fmt::format("{} export PATH={}:$PATH SEXTANT_MESSAGE_DELAY_MS=300; cd {} && exec bash job.sh", kAsRoot,
                  std::filesystem::path(kMpirun).parent_path().string(), place_.path().string()),
      place_ / "log");
  std::string there = place_ / "runs/tiny-llama";
  ASSERT_TRUE(comes_true([&] { return lines_in(there + "/metrics.jsonl") >= 1; })) << run.output();
  ::kill(-run.pid(), SIGINT);  // as a terminal's Ctrl-C does, to all of the foreground
  EXPECT_EQ(run.wait(), 5) << run.output();
  EXPECT_TRUE(
      std::filesystem::exists(fmt::format("{}/step-{:06}/run_state.json", there, lines_in(there + "/metrics.jsonl"))))
      << run.output();
}

}  // namespace
}  // namespace sextant
