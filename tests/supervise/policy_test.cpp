// What the supervisor does for each cause, how often and after how long.
#include <gtest/gtest.h>
#include <signal.h>

#include "base/files.h"
#include "checkout.h"
#include "supervise/retry_policy.h"

namespace sextant {
namespace {

using namespace std::chrono_literals;

constexpr int exited(int code) {
  return code << 8;  // as waitpid gives it
}

TEST(Causes, AreReadOffTheStatus) {
  for (const ExitMeaning& meaning : exit_meanings()) {
    if (meaning.code == ExitCode::unhealthy) continue;
    Cause cause = cause_of_status(exited(number_of(meaning.code)));
    EXPECT_EQ(info_of(cause.kind).name, meaning.name);
    EXPECT_EQ(cause.as_exit_code(), meaning.code);
  }
  EXPECT_EQ(cause_of_status(SIGKILL).text(), "SIGKILL");
  EXPECT_EQ(cause_of_status(exited(128 + SIGKILL)).signal, SIGKILL);  // as mpirun says it
  EXPECT_EQ(cause_of_status(exited(128 + SIGKILL)).as_exit_code(), ExitCode::rank_lost);
  EXPECT_EQ(cause_of_status(exited(1)).kind, CauseKind::launcher_failed);
  EXPECT_EQ(cause_of_status(exited(213)).kind, CauseKind::launcher_failed);
}

TEST(Causes, AreTheTableOfThePage) {
  std::string page = read_file(fmt::format("{}/docs/survive.md", checkout::kSources));
  for (const CauseInfo& info : cause_table()) {
    std::string code = info.exit_code < 0 ? "–" : std::to_string(info.exit_code);
    EXPECT_NE(page.find(fmt::format("| {} | {} | {} |", info.name, code, info.action)), std::string::npos) << info.name;
  }
}

class Policy : public testing::Test {
 protected:
  RetryPolicy::Decision after(CauseKind kind, int64_t step, int64_t newest) {
    return policy_.after({.kind = kind}, step, newest);
  }
  RetryPolicy policy_{{.retries = 3, .first_wait = 100ms, .longest_wait = 150ms}, -1};
};

TEST_F(Policy, WhatGivesTheSameIsNotRetried) {
  for (CauseKind kind : {CauseKind::bad_input, CauseKind::does_not_fit}) EXPECT_FALSE(after(kind, 5, 4).retry);
}

TEST_F(Policy, WaitsGrowAndRetriesEnd) {
  std::vector<std::chrono::milliseconds> waits;
  for (int i = 0; i < 3; ++i) {
    RetryPolicy::Decision next = after(CauseKind::killed, 3, 2);
    ASSERT_TRUE(next.retry);
    waits.push_back(next.wait);
  }
  EXPECT_EQ(waits, (std::vector<std::chrono::milliseconds>{0ms, 100ms, 150ms}));
  RetryPolicy::Decision last = after(CauseKind::killed, 3, 2);
  EXPECT_FALSE(last.retry);
  EXPECT_NE(last.why.find("--retries 3"), std::string::npos) << last.why;
}

TEST_F(Policy, ANewCheckpointIsProgress) {
  for (int64_t newest = 1; newest < 40; ++newest) {
    RetryPolicy::Decision next = after(CauseKind::hang, newest + 1, newest);
    ASSERT_TRUE(next.retry);
    EXPECT_EQ(next.wait, 0ms);
  }
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(after(CauseKind::hang, 40, 20).retry);  // an older one is none
  EXPECT_FALSE(after(CauseKind::hang, 40, 39).retry);
}

TEST_F(Policy, NonFiniteIsRetriedOnceUntilItIsPassed) {
  EXPECT_TRUE(after(CauseKind::non_finite, 10, 8).retry);
  EXPECT_FALSE(after(CauseKind::non_finite, 10, 9).retry);  // a checkpoint, but the same step again
  RetryPolicy other{{.retries = 3}, -1};
  EXPECT_TRUE(other.after({.kind = CauseKind::non_finite}, 10, 8).retry);
  EXPECT_TRUE(other.after({.kind = CauseKind::non_finite}, 14, 12).retry);
  EXPECT_FALSE(other.after({.kind = CauseKind::non_finite}, 13, 12).retry);
}

}  // namespace
}  // namespace sextant
