// A rank that fails, hangs, is killed or is stopped: the run ends in time and says who, where and in which collective;
// nothing is left behind but the last checkpoint, which loads, and the next start tells what happened.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <regex>

#include "base/files.h"
#include "checkout.h"
#include "expectations.h"
#include "processes.h"
#include "started_command.h"

namespace sextant {
namespace {

constexpr double kTimeout = 3;  // seconds that those who wait for it give a rank that hangs, and it itself for ending
constexpr double kSpare = 4;    // for a step and for ending on a busy machine
const std::string kFaultRun =
    "model.layers=4 batch.microbatch=1 batch.seq=32 train.eval_every=0 checkpoint.every=1 checkpoint.background=false "
    "train.timeout_s=1.5 "
    "mesh.dp=2 mesh.tp=2 ";

class Faults : public testing::Test {
 protected:
  Faults() : place_(std::string("fault-") + testing::UnitTest::GetInstance()->current_test_info()->name()) {}

  TimedOutcome run(const std::string& before) { return timed_command(tiny_train(place_, kFaultRun), before); }
  std::string heartbeat(int rank) { return read_file(place_ / fmt::format("run/heartbeat/rank-{}.json", rank)); }

  // The same command again: tells of the end, resumes from step 2 and finishes.
  std::string next_start(const std::string& before) {
    Outcome again = run_command(tiny_train(place_, kFaultRun), before);
    EXPECT_EQ(again.code, 0) << again.output;
    expect_words(again.output, {"previous run failed:", "step-000002 (step 2)", "step 10/10"});
    Outcome third = run_command(tiny_train(place_, kFaultRun));
    EXPECT_EQ(third.output.find("previous run failed"), std::string::npos) << third.output;
    return again.output;
  }

  // How long a run starts says nothing of how it ends: what counts is the time since step 2, the last that was done.
  double seconds_since_last_step() const {
    auto changed = std::filesystem::last_write_time(place_ / "run/metrics.jsonl");
    return std::chrono::duration<double>(std::filesystem::file_time_type::clock::now() - changed).count();
  }

  void expect_end(const Outcome& outcome) {
    EXPECT_LT(seconds_since_last_step(), kTimeout + kSpare) << outcome.output;
    for (int tries = 0; tries < 20 && processes_in(place_.path()) > 0; ++tries) ::usleep(100'000);
    EXPECT_EQ(processes_in(place_.path()), 0);
  }

  ScratchPlace place_;
};

TEST_F(Faults, AThreadThatThrows) {
  TimedOutcome outcome = run("SEXTANT_FAULT=throw@3:1");
  EXPECT_EQ(outcome.code, 3) << outcome.output;
  expect_end(outcome);
  expect_words(outcome.output, {"sextant: rank 1 in step 3: injected fault"});
  EXPECT_TRUE(std::regex_search(outcome.output, std::regex("; rank [023] in step [23][^\\n]* was left waiting")))
      << outcome.output;
  EXPECT_LT(outcome.output.find(" parameters, "), outcome.output.find("sextant:")) << "said before, printed before";
  expect_words(next_start(""), {"rank 1 (process", "failed in step 3: injected fault"});
}

// The first to lose patience is rank 0, which waits for rank 1, or on a busy machine the other replica, which waits for
// rank 0 and says for whom that waits.
void expect_rank_1_named(const TimedOutcome& outcome) {
  const std::string at = "in step 3, F 0 0, at embed.moved (all_reduce over tp)";
  const std::string& said = outcome.output;
  expect_words(said, {"waited 1.5 s in step 3", "rank 1 was last seen in step 3"});
  EXPECT_TRUE(said.find("waited 1.5 s " + at) != said.npos ||
              said.find("rank 0 was last seen " + at + ", waiting for rank 1; rank 1 was last seen") != said.npos)
      << said.substr(0, 3000);
}

TEST_F(Faults, AThreadThatHangs) {
  TimedOutcome outcome = run("SEXTANT_FAULT=stall@3:1");
  EXPECT_EQ(outcome.code, 7) << outcome.output;
  EXPECT_GE(outcome.seconds, kTimeout / 2);
  expect_end(outcome);
  expect_rank_1_named(outcome);
  expect_words(next_start(""), {"rank 1 (process", "was last seen in step 3", "waited 1.5 s"});
}

// Nobody waits for it: it watches itself.
TEST_F(Faults, AnOnlyRankThatHangs) {
  std::string alone = kFaultRun + "mesh.dp=1 mesh.tp=1 ";
  TimedOutcome outcome = timed_command(tiny_train(place_, alone), "SEXTANT_FAULT=stall@3:0 timeout -k 1 20");
  EXPECT_EQ(outcome.code, 7) << outcome.output;
  expect_end(outcome);
  expect_words(outcome.output, {"sextant: rank 0 stood still for 1.5 s in step 3"});
  Outcome again = run_command(tiny_train(place_, alone));
  EXPECT_EQ(again.code, 0) << again.output;
  expect_words(again.output, {"rank 0 (process", "failed in step 3: stood still for 1.5 s", "step-000002 (step 2)"});
}

TEST_F(Faults, BadFaultsAreRefused) {
  for (const char* fault :
       {"fall@3:1", "throw", "throw@3:one", "throw@3:1:2", "throw=5@3:1", "slow=0@3", "throw@0:1"}) {
    Outcome outcome = run(fmt::format("SEXTANT_FAULT={}", fault));
    EXPECT_EQ(outcome.code, 2) << outcome.output;
    expect_words(outcome.output, {"SEXTANT_FAULT", fault, "stall@3:1"});
  }
}

class ProcessFaults : public Faults {
 protected:
  void SetUp() override {
    if (!mpirun_works()) GTEST_SKIP() << "this build has no MPI, or there is no mpirun";
  }
  TimedOutcome fault(const std::string& kind) {
    return run(under_mpirun(4, fmt::format("SEXTANT_FAULT={}@3:1", kind)));
  }
};

TEST_F(ProcessFaults, Throws) {
  TimedOutcome outcome = fault("throw");
  EXPECT_EQ(outcome.code, 3) << outcome.output;
  expect_end(outcome);
  expect_words(outcome.output,
               {"sextant: rank 1 in step 3: injected fault", "the run was ended: rank 1 ended with: injected fault"});
  EXPECT_TRUE(std::regex_search(outcome.output, std::regex("rank [023] in step [23]"))) << outcome.output;
  expect_words(next_start(under_mpirun(4)), {"rank 1 (process", "failed in step 3: injected fault"});
}

TEST_F(ProcessFaults, Hangs) {
  TimedOutcome outcome = fault("stall");
  EXPECT_EQ(outcome.code, 7) << outcome.output;
  expect_end(outcome);
  expect_rank_1_named(outcome);
}

TEST_F(ProcessFaults, IsStopped) {
  TimedOutcome outcome = fault("stop");
  EXPECT_EQ(outcome.code, 7) << outcome.output;
  expect_end(outcome);
  expect_rank_1_named(outcome);
  next_start(under_mpirun(4));
}

// mpirun ends the others at once: what they could not say is in their heartbeats.
TEST_F(ProcessFaults, IsKilled) {
  TimedOutcome outcome = fault("kill");
  EXPECT_NE(outcome.code, 0);
  expect_end(outcome);
  expect_words(heartbeat(1), {"\"rank\":1", "\"state\":\"running\"", "\"step\":3"});
  expect_words(heartbeat(0),
               {"\"op\":\"embed.moved (all_reduce over tp)\"", "\"waiting_for\":1", "\"host\":", "\"pid\":"});
  std::string told = next_start(under_mpirun(4));
  expect_words(told, {"rank 1 (process", "was last seen in step 3\n"});
  // Where mpirun takes its time, rank 0 ends by itself, and says the same in other words.
  EXPECT_TRUE(told.find("waiting for rank 1") != told.npos || told.find("for a message from rank 1") != told.npos)
      << told;
}

// mpirun cannot end anybody: every rank goes by itself, also the one that hangs.
TEST_F(ProcessFaults, WithAStoppedLauncherEveryRankGoes) {
  for (const char* kind : {"throw", "stall"}) {
    std::filesystem::remove_all(place_.path() / "run");
    std::string settings =
        "model.layers=2 batch.microbatch=1 batch.seq=32 train.eval_every=0 train.timeout_s=1.5 mesh.dp=2 "
        "train.steps=100";
    // A step takes a quarter of a second, so there is time to stop mpirun before the eighth.
    StartedCommand run(
        fmt::format("export SEXTANT_FAULT={}@8:1 SEXTANT_MESSAGE_DELAY_MS=60 OMPI_ALLOW_RUN_AS_ROOT=1 "
                    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 ASAN_OPTIONS=detect_leaks=0; exec {} --oversubscribe -n 2 {} {}",
                    kind, kMpirun, checkout::kBinary, tiny_train(place_, settings)),
        place_ / "log");
    ASSERT_TRUE(comes_true([&] { return lines_in(place_ / "run/metrics.jsonl") >= 1; })) << run.output();
    run.send(SIGSTOP);
    ASSERT_EQ(processes_in(place_.path(), Counted::ranks), 2) << run.output();
    ASSERT_TRUE(comes_true([&] { return lines_in(place_ / "run/metrics.jsonl") >= 7; })) << run.output();
    auto start = std::chrono::steady_clock::now();
    EXPECT_TRUE(comes_true([&] { return processes_in(place_.path(), Counted::ranks) == 0; })) << kind;
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::duration<double>(kTimeout + kSpare)) << kind;
    run.send(SIGCONT);
    EXPECT_EQ(run.wait(), *kind == 't' ? 3 : 7) << kind << "\n" << run.output();
  }
}

}  // namespace
}  // namespace sextant
