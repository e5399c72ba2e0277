// Who may write into a run's directory, and when: runs of nobody's, supervisors, and their attempts.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "base/error.h"
#include "scratch_run.h"
#include "train/save/run_directory.h"
#include "train/save/run_lock.h"

namespace sextant {
namespace {

using namespace std::chrono_literals;

TEST(RunLocks, ASupervisorHoldsItsDirectoryBetweenAttempts) {
  ScratchRun scratch("supervised-lock");
  const std::filesystem::path& out = scratch.root();
  RunLock supervisor(out, RunLock::kSupervisorFile);
  try {
    prepare_run_directory(out);
    ADD_FAILURE() << "a run of nobody's has begun";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("another supervisor is at work here: " + RunLock::own_name()),
              std::string::npos)
        << error.what();
  }
  // Nothing was taken; an attempt of its own may begin, and holds the run's lock.
  PreparedDirectory attempt = prepare_run_directory(out, RunLock::own_name());
  EXPECT_TRUE(attempt.lock.is_held());
  EXPECT_THROW(RunLock{out}, UserError);
}

// RunError: its supervisor starts it again.
TEST(RunLocks, AnAttemptOfAnotherSupervisorEnds) {
  ScratchRun scratch("other-supervisor");
  EXPECT_THROW(prepare_run_directory(scratch.root(), "process 1 on elsewhere"), RunError);
  RunLock supervisor(scratch.root(), RunLock::kSupervisorFile);
  EXPECT_THROW(prepare_run_directory(scratch.root(), "process 1 on elsewhere"), RunError);
  EXPECT_THROW(prepare_run_directory(scratch.root(), "process"), RunError);
}

TEST(RunLocks, AnAttemptWaitsForThoseWhoOnlyLook) {
  ScratchRun scratch("lock-patience");
  const std::filesystem::path& out = scratch.root();
  RunLock supervisor(out, RunLock::kSupervisorFile);
  std::optional<RunLock> looks(out);
  std::thread leaves([&] {
    std::this_thread::sleep_for(200ms);
    looks.reset();
  });
  EXPECT_TRUE(prepare_run_directory(out, RunLock::own_name()).lock.is_held());
  leaves.join();
}

TEST(RunLocks, LookingTakesNothingAndMakesNoFile) {
  ScratchRun scratch("lock-look");
  const std::filesystem::path& out = scratch.root();
  RunLock::require_free(out, RunLock::kSupervisorFile);
  EXPECT_FALSE(std::filesystem::exists(out / RunLock::kSupervisorFile));
  EXPECT_EQ(RunLock::last_holder(out, RunLock::kSupervisorFile), "");
  { RunLock ended(out, RunLock::kSupervisorFile); }
  RunLock::require_free(out, RunLock::kSupervisorFile);
  EXPECT_TRUE(RunLock(out, RunLock::kSupervisorFile).is_held());
  EXPECT_TRUE(RunLock::last_holder(out, RunLock::kSupervisorFile).starts_with(RunLock::own_name() + ", since "));
}

}  // namespace
}  // namespace sextant
