// A request to stop a supervised run is heard whenever it comes, and the answer is exit code 5.
#include <gtest/gtest.h>

#include "expectations.h"
#include "run_fixture.h"

namespace sextant {
namespace {

class RunStop : public RunVerb {
 protected:
  // A stand-in for mpirun: a script for bash, in which `train` starts the ranks as threads.
  std::string with_mpirun(const std::string& script) {
    std::filesystem::create_directories(place_ / "bin");
    write_text(place_ / "bin/mpirun",
               fmt::format("#!/bin/bash\nwhile [ \"$1\" != {} ]; do shift; done\n{}\n", checkout::kBinary, script));
    std::filesystem::permissions(place_ / "bin/mpirun", std::filesystem::perms::owner_all);
    return fmt::format("export PATH={}:$PATH; ", place_ / "bin");
  }
  std::string run_command_line() const {
    return fmt::format("exec {} {}", checkout::kBinary, arguments("run", kLong + "--mpi 1"));
  }
  std::string started() const { return place_ / "started"; }
  bool has_started() const {
    return comes_true([&] { return std::filesystem::exists(started()); });
  }
};

// mpirun drops a signal that arrives before it has ranks to forward it to.
TEST_F(RunStop, IsAskedForAgainWhereTheLauncherDroppedIt) {
  StartedCommand run(
      with_mpirun(fmt::format("trap : USR1; touch {}; sleep 1; exec \"$@\"", started())) + run_command_line(),
      place_ / "log");
  ASSERT_TRUE(has_started());
  run.send(SIGTERM);
  EXPECT_EQ(run.wait(), 5) << run.output();
  EXPECT_EQ(count_of(run.output(), "asked to save and stop"), 1u) << run.output();
  expect_nothing_left();
}

TEST_F(RunStop, IsTheAnswerAlsoWhereTheRunEndedByAFailure) {
  StartedCommand run(
      with_mpirun(fmt::format("trap 'exit 1' USR1; touch {}; sleep 60 & wait", started())) + run_command_line(),
      place_ / "log");
  ASSERT_TRUE(has_started());
  run.send(SIGTERM);
  EXPECT_EQ(run.wait(), 5) << run.output();
  expect_words(run.output(), {"asked to stop; the run ended by exit code 1", "resumes from step 0"});
}

TEST_F(RunStop, ThatComesWhenAllIsDoneIsNoFailure) {
  Outcome outcome = run_command(arguments("run", "--mpi 1"), with_mpirun("\"$@\"; kill -USR1 $$"));
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  expect_words(outcome.output, {"attempts  1\n", "outcome   finished"});
}

TEST_F(RunStop, EndsAPreflight) {
  StartedCommand run(
      fmt::format("exec {} {}", checkout::kBinary, arguments("run", kLong + "--preflight --burn 100 --retries 0")),
      place_ / "log");
  ASSERT_TRUE(comes_true([&] { return std::filesystem::exists(place_ / "run/preflight.json"); })) << run.output();
  run.send(SIGTERM);
  EXPECT_EQ(run.wait(std::chrono::seconds(20)), 5) << run.output();
  EXPECT_FALSE(std::filesystem::exists(place_ / "run/metrics.jsonl"));
  expect_nothing_left();
}

TEST_F(RunUnderMpi, AStopReachesRanksThatAreBeingStarted) {
  for (int after_ms : {100, 300, 500}) {
    std::filesystem::remove_all(place_ / "run");
    StartedCommand run(
        fmt::format("export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
                    "ASAN_OPTIONS=detect_leaks=0; exec {} {}",
                    checkout::kBinary, arguments("run", kLong + "mesh.dp=2 --mpi 2 --launcher-arg --oversubscribe")),
        place_ / "log");
    ASSERT_TRUE(comes_true([&] { return std::filesystem::exists(place_ / "run/supervisor.json"); })) << run.output();
    std::this_thread::sleep_for(std::chrono::milliseconds(after_ms));
    run.send(SIGTERM);
    EXPECT_EQ(run.wait(), 5) << after_ms << "\n" << run.output();
    expect_nothing_left();
  }
}

}  // namespace
}  // namespace sextant
