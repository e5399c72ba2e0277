// The action of the supervisor for each cause, how often and after how long.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <random>

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
  EXPECT_EQ(cause_of_status(exited(128)).kind, CauseKind::launcher_failed);  // signal 0 is none
  EXPECT_EQ(cause_of_status(exited(129)).signal, SIGHUP);
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

// Drawn histories against the rules of docs/survive.md, kept as plain lists of what happened.
TEST(PolicyRules, HoldForDrawnHistories) {
  const std::vector<CauseInfo> causes = cause_table();
  std::mt19937 random(3);
  int refused = 0, limited = 0;
  for (int history = 0; history < 6000; ++history) {
    const int64_t retries = 1 + static_cast<int64_t>(random() % 4), first = -1 + static_cast<int64_t>(random() % 3);
    RetryPolicy policy{{.retries = retries, .first_wait = 100ms, .longest_wait = 350ms}, first};
    struct Failure {
      CauseKind kind;
      int64_t step, newest;
    };
    std::vector<Failure> past;
    for (int turn = 0; turn < 8; ++turn) {
      const CauseInfo& info = causes[random() % causes.size()];
      int64_t newest = past.empty() ? first : past.back().newest;
      newest += static_cast<int64_t>(random() % 3) - (random() % 5 == 0 ? 1 : 0);
      int64_t step = newest + static_cast<int64_t>(random() % 3);
      RetryPolicy::Decision found = policy.after({.kind = info.kind}, step, newest);
      if (info.response != Response::retry) {
        EXPECT_FALSE(found.retry) << info.name;
        break;
      }
      past.push_back({info.kind, step, newest});
      // Failures in a row since the last one that found a checkpoint newer than all before.
      int64_t best = first, in_a_row = 0;
      for (const Failure& failure : past) {
        if (failure.newest > best) in_a_row = 0;
        best = std::max(best, failure.newest), ++in_a_row;
      }
      // Of this cause, since a checkpoint that lies beyond every step at which it was seen.
      int64_t furthest = -1, of_cause = 0;
      for (const Failure& failure : past) {
        if (failure.kind != info.kind) continue;
        if (failure.newest > furthest) of_cause = 0;
        furthest = std::max(furthest, failure.step), ++of_cause;
      }
      bool again = info.most > 0 && of_cause > info.most;
      ASSERT_EQ(found.retry, in_a_row <= retries && !again)
          << "history " << history << ", " << info.name << ": " << found.why;
      if (!found.retry) {
        ++(again && in_a_row <= retries ? limited : refused);
        break;
      }
      std::chrono::milliseconds wait = in_a_row == 1 ? 0ms : in_a_row == 2 ? 100ms : in_a_row == 3 ? 200ms : 350ms;
      EXPECT_EQ(found.wait, wait) << in_a_row;
    }
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(limited, 100);
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
