// The limit a run learns from its steps: late rather than wrong.
#include "train/health/time_limits.h"

#include <gtest/gtest.h>

#include "train/health/stall_watch.h"

namespace sextant {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TimeLimits learned(int steps, milliseconds slowest) {
  TimeLimits limits{RunConfig{}};
  for (int i = 0; i < steps; ++i) limits.step_took(i == 0 ? slowest : slowest / 10);
  return limits;
}

TEST(TimeLimits, AreLearnedFromTheSlowestStep) {
  EXPECT_EQ(learned(0, seconds(0)).in_step(), seconds(600));
  EXPECT_EQ(learned(TimeLimits::kStepsToLearn - 1, milliseconds(10)).in_step(), seconds(600));
  EXPECT_EQ(learned(TimeLimits::kStepsToLearn, milliseconds(10)).in_step(), seconds(60));
  EXPECT_EQ(learned(TimeLimits::kStepsToLearn, seconds(5)).in_step(), seconds(100));
  EXPECT_EQ(learned(TimeLimits::kStepsToLearn, seconds(40)).in_step(), seconds(600));
  EXPECT_EQ(learned(1000, seconds(5)).in_other_work(), seconds(600));
}

TEST(TimeLimits, ThatAreSetStay) {
  RunConfig run;
  run.train.timeout_s = 7.5;
  TimeLimits limits(run);
  for (int i = 0; i < 100; ++i) limits.step_took(seconds(1));
  EXPECT_EQ(limits.in_step(), milliseconds(12500));
  EXPECT_EQ(limits.in_other_work(), milliseconds(12500));
  EXPECT_EQ(TimeLimits::wait_of(milliseconds(3000)), milliseconds(1500));
  EXPECT_EQ(TimeLimits::wait_of(seconds(600)), seconds(595));
}

// The wait is as long as the limit that is set; notifying the other ranks and ending come after it.
TEST(TimeLimits, ThatAreSetAreWaitedInFull) {
  for (double set : {0.5, 2.0, 5.0, 6.0, 60.0, 3600.0}) {
    RunConfig run;
    run.train.timeout_s = set;
    TimeLimits limits(run);
    milliseconds wait(static_cast<int64_t>(1000 * set));
    EXPECT_EQ(TimeLimits::wait_of(limits.in_step()), wait);
    EXPECT_EQ(TimeLimits::wait_of(limits.in_other_work()), wait);
    EXPECT_LE(TimeLimits::end_of(limits.in_step()), milliseconds(5000));
  }
}

// Calls `end` once, and stays alive, unlike a run.
class Watched : public testing::Test {
 protected:
  StallWatch watch(double timeout_s) {
    RunConfig run;
    run.train.timeout_s = timeout_s;
    return StallWatch({rank_status_, nullptr, TimeLimits(run), [this](const std::string& why) {
                         std::lock_guard lock(mutex_);
                         why_ = why;
                         told_.notify_all();
                       }});
  }
  std::string why(seconds patience) {
    std::unique_lock lock(mutex_);
    told_.wait_for(lock, patience, [this] { return !why_.empty(); });
    return why_;
  }
  RankStatus rank_status_;
  std::mutex mutex_;
  std::condition_variable told_;
  std::string why_;
};

TEST_F(Watched, EndsWhereItStandsStill) {
  StallWatch guard = watch(0.5);
  rank_status_.begin_step(4);
  guard.begin_step();
  rank_status_.begin_action('F', 0, 2);
  EXPECT_EQ(why(seconds(20)), "stood still for 0.5 s in step 4, F 0 2");
}

TEST_F(Watched, LoadingAndSavingTakeTheirTime) {
  StallWatch guard = watch(0.3);
  EXPECT_EQ(why(seconds(1)), "");  // no step has begun
  guard.begin_step();
  guard.begin_other_work();
  EXPECT_EQ(why(seconds(1)), "");
}

}  // namespace
}  // namespace sextant
