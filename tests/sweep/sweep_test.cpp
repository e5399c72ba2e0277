// The runs of a sweep, their rungs and their scores.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "sweep/halving.h"
#include "sweep/score.h"
#include "sweep/sweep_grid.h"

namespace sextant {
namespace {

std::vector<std::string> names(const std::vector<SweepRun>& runs) {
  std::vector<std::string> out;
  for (const SweepRun& run : runs) out.push_back(run.name);
  return out;
}

TEST(SweepGrid, IsTheProduct) {
  std::vector<SweepRun> runs = sweep_grid({"a=1,2", "b=[x,y]", "c=p,\"q,r\""});
  EXPECT_EQ(names(runs), (std::vector<std::string>{"a=1 c=p", "a=1 c=\"q,r\"", "a=2 c=p", "a=2 c=\"q,r\""}));
  EXPECT_EQ(runs[1].overrides, (std::vector<std::string>{"a=1", "b=[x,y]", "c=\"q,r\""}));
  EXPECT_EQ(sweep_grid({"data.train=a/b.txt,c"})[0].name, "data.train=a_b.txt");
}

TEST(SweepGrid, RefusesWhatMakesNoRuns) {
  for (const std::vector<std::string>& bad : std::vector<std::vector<std::string>>{
           {}, {"a=1"}, {"a"}, {"=1,2"}, {"a=1,,2"}, {"a=1,1"}, {"a=1,2", "a=3"}, {"a=1,2,"}})
    EXPECT_THROW(sweep_grid(bad), UserError) << (bad.empty() ? "" : bad[0]);
  EXPECT_EQ(
      sweep_grid({"a=0,1,2,3,4,5,6,7,8,9", "b=0,1,2,3,4,5,6,7,8,9", "c=0,1,2,3,4,5,6,7,8,9", "d=0,1,2,3,4,5,6,7,8,9"})
          .size(),
      10'000u);  // as many as are allowed
  std::string many = "=0";
  for (int i = 1; i < 101; ++i) many += "," + std::to_string(i);
  EXPECT_THROW(sweep_grid({"a" + many, "b" + many}), UserError);
}

TEST(Rungs, KeepOneInSoMany) {
  EXPECT_EQ(rungs_of(8, 1000, 1, 10), (std::vector<Rung>{{1000, 8}}));
  EXPECT_EQ(rungs_of(8, 1000, 2, 10), (std::vector<Rung>{{125, 8}, {250, 4}, {500, 2}, {1000, 1}}));
  EXPECT_EQ(rungs_of(10, 900, 3, 10), (std::vector<Rung>{{33, 10}, {100, 4}, {300, 2}, {900, 1}}));
  EXPECT_EQ(rungs_of(8, 1000, 2, 300), (std::vector<Rung>{{500, 8}, {1000, 4}}));
  EXPECT_EQ(rungs_of(4, 12, 2, 10), (std::vector<Rung>{{12, 4}}));
}

class Scores : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(run_); }
  void TearDown() override { std::filesystem::remove_all(run_); }
  void write(const std::string& text) { std::ofstream(run_ / "metrics.jsonl") << text; }
  std::filesystem::path run_ = std::filesystem::temp_directory_path() / ("sextant_sweep_" + std::to_string(::getpid()));
};

TEST_F(Scores, AreTheMeanOfTheLastTenth) {
  std::string text;
  for (int step = 1; step <= 200; ++step)
    text += "{\"step\":" + std::to_string(step) + ",\"loss\":" + std::to_string(200 - step) +
            (step == 100 ? ",\"validation_loss\":7.5" : "") + "}\n";
  write(text + "{\"step\":201,\"lo");
  RunScore score = score_of(run_);
  EXPECT_EQ(score.steps, 200);
  EXPECT_DOUBLE_EQ(*score.loss, 9.5);
  EXPECT_EQ(score.validation_loss, 7.5);
  EXPECT_EQ(score.value(LossMeasure::validation_loss), 7.5);
  EXPECT_DOUBLE_EQ(score.value(LossMeasure::loss), 9.5);
}

// The mean of the last tenth, and of ten steps at least, of as many as there are; the middle of as many rates.
TEST_F(Scores, OfAnyNumberOfSteps) {
  for (int steps : {1, 5, 10, 11, 99, 100, 119, 120, 250}) {
    std::string text;
    for (int step = 1; step <= steps; ++step)
      text += "{\"step\":" + std::to_string(step) + ",\"loss\":" + std::to_string(step * step) +
              ",\"tokens_per_s\":" + std::to_string(1000 - step) + "}\n";
    write(text);
    RunScore score = score_of(run_);
    int count = std::min(steps, std::max(10, steps / 10));
    double sum = 0;
    for (int step = steps - count + 1; step <= steps; ++step) sum += step * step;
    EXPECT_NEAR(*score.loss, sum / count, 1e-9 * sum) << steps;
    // Falling rates: sorted, the one in the middle of those of the last steps, the upper of two.
    EXPECT_EQ(*score.tokens_per_s, 1000 - steps + count / 2) << steps;
  }
}

// A run that was not finite for a step and went on is judged by its last losses.
TEST_F(Scores, ForgiveAStepThatWasNotFinite) {
  write("{\"step\":1,\"loss\":3}\n{\"step\":2,\"non_finite\":{\"loss\":\"nan\"}}\n{\"step\":3,\"loss\":2}\n");
  RunScore score = score_of(run_);
  EXPECT_FALSE(score.diverged);
  EXPECT_DOUBLE_EQ(*score.loss, 2.5);
}

TEST_F(Scores, AreInfiniteWhereTheLossIsNotFinite) {
  EXPECT_TRUE(std::isinf(score_of(run_ / "none").value(LossMeasure::loss)));
  write("{\"step\":1,\"loss\":3}\n{\"step\":2,\"non_finite\":{\"loss\":\"nan\"}}\n");
  RunScore score = score_of(run_);
  EXPECT_TRUE(score.diverged);
  EXPECT_TRUE(std::isinf(score.value(LossMeasure::loss)));
}

}  // namespace
}  // namespace sextant
