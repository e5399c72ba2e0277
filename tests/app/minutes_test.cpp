// `train --minutes`: steps by the time that some take here, a schedule that fits them, and the same steps after a
// resume.
#include <gtest/gtest.h>

#include "base/files.h"
#include "expectations.h"

namespace sextant {
namespace {

int64_t number_of_key(const std::string& toml, const std::string& key) {
  size_t at = toml.find("\n" + key + " = ");
  EXPECT_NE(at, toml.npos) << key;
  return at == toml.npos ? 0 : std::stoll(toml.substr(at + key.size() + 4));
}

struct RunSchedule {
  int64_t steps = 0, warmup = 0;
};
RunSchedule schedule_in(const std::string& file) {
  std::string toml = read_file(file);
  return {number_of_key(toml, "steps"), number_of_key(toml, "warmup")};
}

std::string line_for(const ScratchPlace& place, const std::string& extra) {
  return fmt::format("train {} --out {} data.cache={} data.stories_bytes=60000 train.threads=1 train.eval_every=0 {}",
                     config_path("tiny-llama.toml"), place / "run", place / "cache", extra);
}

TEST(Minutes, ChooseTheStepsOnceAndFitTheSchedule) {
  ScratchPlace place("minutes");
  RunSchedule given = schedule_in(config_path("tiny-llama.toml"));
  ASSERT_GT(given.warmup, 0);
  Outcome first = run_command(line_for(place, "--minutes 1 --until 1"));
  ASSERT_EQ(first.code, 5) << first.output;  // stopped, as asked
  expect_words(first.output, {"--minutes 1: ", " steps of ", " of them warm-up"});
  RunSchedule chosen = schedule_in(place / "run/config.toml");
  EXPECT_GT(chosen.steps, 1);
  double share = static_cast<double>(given.warmup) / static_cast<double>(given.steps);
  EXPECT_NEAR(static_cast<double>(chosen.warmup), share * static_cast<double>(chosen.steps), 1);

  Outcome again = run_command(line_for(place, "--minutes 5 --until 2"));
  ASSERT_EQ(again.code, 5) << again.output;
  expect_words(again.output, {"steps that the run began with", "resuming from"});
  RunSchedule kept = schedule_in(place / "run/config.toml");
  EXPECT_EQ(kept.steps, chosen.steps);
  EXPECT_EQ(kept.warmup, chosen.warmup);
}

// A new directory that starts from a checkpoint of another run.
TEST(Minutes, ABranchKeepsTheStepsOfItsRun) {
  ScratchPlace place("minutes");
  Outcome first = run_command(line_for(place, "--minutes 1 --until 1"));
  ASSERT_EQ(first.code, 5) << first.output;
  RunSchedule chosen = schedule_in(place / "run/config.toml");
  std::string line = fmt::format(
      "train {} --out {} data.cache={} data.stories_bytes=60000 train.threads=1 train.eval_every=0 --minutes 5 "
      "--until 2 checkpoint.resume={}",
      config_path("tiny-llama.toml"), place / "branch", place / "cache", place / "run/step-000001");
  Outcome branch = run_command(line);
  ASSERT_EQ(branch.code, 5) << branch.output;
  expect_words(branch.output, {"steps that the run began with"});
  RunSchedule kept = schedule_in(place / "branch/config.toml");
  EXPECT_EQ(kept.steps, chosen.steps);
  EXPECT_EQ(kept.warmup, chosen.warmup);
}

TEST(Minutes, FitTheDecayOfWsd) {
  ScratchPlace place("minutes");
  Outcome first = run_command(line_for(place, "--minutes 1 --until 1 optimizer.schedule=wsd optimizer.decay=5"));
  ASSERT_EQ(first.code, 5) << first.output;
  RunSchedule chosen = schedule_in(place / "run/config.toml");
  int64_t decay = number_of_key(read_file(place / "run/config.toml"), "decay");
  EXPECT_NEAR(static_cast<double>(decay), static_cast<double>(chosen.steps) / 2, 1);  // 5 of 10
  EXPECT_LE(chosen.warmup + decay, chosen.steps);
}

TEST(Minutes, AreRefusedBesideSteps) {
  ScratchPlace place("minutes");
  expect_refusal(run_command(line_for(place, "--minutes 1 train.steps=5")), 2,
                 {"--minutes: train.steps is given, too; expected one of the two"});
  expect_refusal(run_command(line_for(place, "--minutes 0")), 2, {"--minutes 0; expected a number of minutes"});
}

}  // namespace
}  // namespace sextant
