// Faults that a supervised run survives in addition to the faults of ranks: system calls that fail once, in the run or
// in the supervisor itself.
#include <gtest/gtest.h>

#include <cerrno>

#include "durability/error_shim.h"
#include "expectations.h"
#include "run_fixture.h"

namespace sextant {
namespace {

class RunErrors : public RunVerb {
 protected:
  void SetUp() override {
    if (!kErrorShimWorks) GTEST_SKIP() << "calls cannot be made to fail beside a sanitizer";
  }
  Outcome run_with(const std::string& extra, const FailingCalls& calls) {
    std::filesystem::remove_all(place_ / "run");
    std::filesystem::remove(calls.counter);
    return run_command(arguments("run", extra + " --backoff 0"), with_failing(calls));
  }
};

TEST_F(RunErrors, ADirectoryThatCannotBeListedOnceIsNoBadInput) {
  std::vector<std::string> expected = undisturbed("");
  for (int error : {EIO, EMFILE})
    for (int which = 1; which <= 12; ++which) {
      Outcome outcome = run_with("", {.call = "list",
                                      .error = error,
                                      .path = place_ / "run",
                                      .from = which,
                                      .to = which,
                                      .counter = place_ / "count"});
      EXPECT_EQ(outcome.code, 0) << which << "\n" << outcome.output;
      EXPECT_EQ(losses(), expected) << which << "\n" << outcome.output;
    }
}

TEST_F(RunErrors, ADirectoryThatCanNeverBeListedIsGivenUpAsAFailure) {
  Outcome outcome = run_with(
      "--retries 2",
      {.call = "list", .error = EIO, .path = place_ / "run", .from = 1, .to = 1000, .counter = place_ / "count"});
  EXPECT_EQ(outcome.code, 3) << outcome.output;
  expect_words(outcome.output, {"Input/output error", "--retries 2"});
}

// A run whose 16-bit checkpoints would be read without their low bits goes on with other weights.
TEST_F(RunErrors, AFileThatCannotBeLookedAtOnceIsNotTakenForAbsent) {
  const std::string bf16 = "checkpoint.dtype=bf16 ";
  std::vector<std::string> expected = undisturbed(bf16);
  struct Look {
    const char* file;
    int which;
  };
  // Sizes are compared first; the second look decides what is read.
  for (const Look& look :
       {Look{"step-000004/master_weights.safetensors", 1}, Look{"step-000004/master_weights.safetensors", 2},
        Look{"step-000004/manifest.json", 1}, Look{"step-000004/model", 1}, Look{"step-000004/run_state.json", 1},
        Look{"set-aside.json", 1}, Look{"local_checkpoints.json", 1}}) {
    std::string counter = place_ / "count", name = fmt::format("{} {}", look.file, look.which);
    Outcome outcome = run_with(bf16 + "--inject kill@6", {.call = "look",
                                                          .error = EIO,
                                                          .path = place_ / (std::string("run/") + look.file),
                                                          .from = look.which,
                                                          .to = look.which,
                                                          .counter = counter});
    EXPECT_EQ(outcome.code, 0) << name << "\n" << outcome.output;
    EXPECT_EQ(losses(), expected) << name << "\n" << outcome.output;
    EXPECT_TRUE(std::filesystem::exists(counter)) << name;
  }
}

TEST_F(RunErrors, AMetricsFileThatCannotGrowIsNamedWithTheReason) {
  Outcome outcome = run_with("", {.call = "write",
                                  .error = EFBIG,
                                  .path = place_ / "run/metrics.jsonl",
                                  .from = 3,
                                  .to = 3,
                                  .counter = place_ / "count"});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  expect_words(outcome.output, {"metrics.jsonl: cannot write: File too large", "attempts  2"});
  // Also where the run's own output is lost: its events have it.
  size_t failed = outcome.output.find("== attempt 1 failed");
  ASSERT_NE(failed, std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.substr(failed, outcome.output.find('\n', failed) - failed).find("File too large"),
            std::string::npos)
      << outcome.output;
}

// As under a profiler whose signals come faster than space can be reserved.
TEST_F(RunErrors, ReservationsThatAreInterruptedEveryTimeDoNotHang) {
  StartedCommand run(fmt::format("exec env {} {} {}",
                                 with_failing({.call = "fallocate",
                                               .error = EINTR,
                                               .path = place_ / "run",
                                               .from = 1,
                                               .to = 1'000'000'000,
                                               .counter = place_ / "count"}),
                                 checkout::kBinary, arguments("train", "train.steps=2")),
                     place_ / "log");
  EXPECT_EQ(run.wait(std::chrono::seconds(60)), 0) << run.output();
  EXPECT_TRUE(std::filesystem::exists(place_ / "run/step-000002"));
  EXPECT_GT(std::filesystem::file_size(place_ / "count"), 0u);
}

TEST_F(RunErrors, AnOutputThatIsInterruptedEveryTimeDoesNotHang) {
  StartedCommand run(fmt::format("exec env {} {} {}",
                                 with_failing({.call = "write",
                                               .error = EINTR,
                                               .path = place_ / "log",
                                               .from = 1,
                                               .to = 1'000'000'000,
                                               .counter = place_ / "count"}),
                                 checkout::kBinary, arguments("train", "train.steps=2")),
                     place_ / "log");
  EXPECT_EQ(run.wait(std::chrono::seconds(60)), 0) << run.output();
  EXPECT_TRUE(std::filesystem::exists(place_ / "run/step-000002"));
}

// The clock is set when step 4 is done, which is then a day ago by the times of files.
TEST_F(RunErrors, AClockThatIsSetLosesNoDay) {
  Outcome outcome =
      run_command(arguments("run", "--inject kill@6 --json"), with_clock_jump(place_ / "run/step-000004", 86'400));
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  nlohmann::json told = report(outcome);
  EXPECT_EQ(told["failures"], 1);
  EXPECT_LT(told["seconds"].get<double>(), 3600) << outcome.output;
  double lost = 0;
  for (const auto& [phase, seconds] : told["lost"].items()) lost += seconds.get<double>();
  EXPECT_LT(lost, 3600) << outcome.output;
  EXPECT_LT(told["end_seconds"].get<double>(), 3600) << outcome.output;
}

TEST_F(RunErrors, WhatTheSupervisorSaysIsSeenWhereItsLogIsFull) {
  Outcome outcome = run_with("checkpoint.resume=/no/such/place", {.call = "write",
                                                                  .error = EFBIG,
                                                                  .path = place_ / "run/run.log",
                                                                  .from = 1,
                                                                  .to = 1000000,
                                                                  .counter = place_ / "count"});
  EXPECT_EQ(outcome.code, 2) << outcome.output;
  expect_words(outcome.output, {"== attempt 1,", "== given up: exit code 2"});
}

}  // namespace
}  // namespace sextant
