// When a run last made progress, by its files: where the time of an interruption begins.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "ckpt/checkpoints.h"
#include "ckpt/model_directory.h"
#include "supervise/run_report.h"
#include "supervise/steady_wall.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class LastProgress : public testing::Test {
 protected:
  LastProgress() { fs::create_directories(out_); }
  ~LastProgress() override { fs::remove_all(out_); }

  void step_ended(WallTime when) const {
    std::ofstream(out_ / "metrics.jsonl") << "{}\n";
    fs::last_write_time(out_ / "metrics.jsonl", fs::file_time_type::clock::from_sys(when));
  }
  // As a checkpoint is saved: its files are older than its name.
  void saved(int64_t step) const {
    fs::path at = checkpoint_path(out_, step), staged = out_ / "staged";
    fs::create_directories(staged);
    std::ofstream(staged / kRunStateFile) << "{}\n";
    fs::last_write_time(staged / kRunStateFile, fs::file_time_type::clock::from_sys(now_ - 50s));
    fs::rename(staged, at);
  }
  std::optional<WallTime> found(bool background) const {
    RunConfig run;
    run.checkpoint.background = background;
    return last_progress(out_, run);
  }

  fs::path out_ = fs::temp_directory_path() / ("sextant-progress-" + std::to_string(::getpid()));
  WallTime now_ = std::chrono::system_clock::now();
};

TEST_F(LastProgress, IsNothingBeforeAnything) {
  EXPECT_FALSE(found(true));
  EXPECT_FALSE(found(false));
}

TEST_F(LastProgress, IsTheEndOfTheLastStep) {
  saved(1);
  step_ended(now_ + 70s);
  EXPECT_EQ(found(true), now_ + 70s);
  EXPECT_EQ(found(false), now_ + 70s);
}

TEST_F(LastProgress, IsTheCheckpointThatStepsWaitedFor) {
  step_ended(now_ - 60s);
  EXPECT_EQ(found(false), now_ - 60s);
  saved(2);
  ASSERT_TRUE(found(false));
  EXPECT_GT(*found(false), now_ - 20s);
  EXPECT_EQ(found(true), now_ - 60s) << "steps went on while it was written";
}

TEST(SteadyWalls, FilesKeepTheirPlaceWhenTheClockIsSet) {
  WallTime first(1000s), last(1100s);
  for (std::chrono::hours set : {24h, -24h, 0h}) {
    EXPECT_EQ(time_within(WallTime(1040s), set, first, last), WallTime(1040s)) << "written before it was set";
    EXPECT_EQ(time_within(WallTime(1040s) + set, set, first, last), WallTime(1040s)) << "and after";
    EXPECT_EQ(time_within(WallTime(990s), set, first, last), first);
  }
  EXPECT_EQ(time_within(WallTime(1200s), 0h, first, last), last);
}

// Lines of a run that went on from step 3: those after it count, once each; what is no number, or cut off, does not.
TEST_F(LastProgress, SecondsOfStepsThatCount) {
  std::ofstream(out_ / "metrics.jsonl") << R"({"step":1,"step_s":1}
{"step":2,"step_s":2}
{"step":3,"step_s":4}
{"step":4,"step_s":8}
{"step":5,"step_s":"16"}
{"step":6}
{"step":7,"step_s":32}
{"step":8,"step_s":6)";
  EXPECT_EQ(productive_seconds(out_, 0), 47);
  EXPECT_EQ(productive_seconds(out_, 2), 44);
  EXPECT_EQ(productive_seconds(out_, 3), 40);
  EXPECT_EQ(productive_seconds(out_, 4), 32);
  EXPECT_EQ(productive_seconds(out_, 7), 0);
  EXPECT_EQ(last_metrics_step(out_), 7);
  fs::remove(out_ / "metrics.jsonl");
  EXPECT_EQ(productive_seconds(out_, 0), 0);
  EXPECT_EQ(last_metrics_step(out_), 0);
}

}  // namespace
}  // namespace sextant
