// `train --find-lr`: what it prints and writes, and that the run's own files stay as they are.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "command.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

// Every file of a run but those of the range test.
std::map<std::string, std::string> files_of_run(const fs::path& run) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(run))
    if (entry.is_regular_file() && entry.path().string().find("/find-lr/") == std::string::npos)
      files[entry.path().string()] = read_file(entry.path());
  return files;
}

TEST(FindLr, SuggestsARateAndLeavesTheRunAsItIs) {
  ScratchPlace place("find-lr");
  std::string train = tiny_train(place, "train.steps=2 train.eval_every=0 batch.microbatch=8 batch.seq=32");
  ASSERT_EQ(run_command(train + " -q").code, 0);
  std::map<std::string, std::string> before = files_of_run(place / "run");
  Outcome outcome = run_command(train + " --find-lr=1e-5:10:60");
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("is where the loss falls fastest"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("learning rate (log scale) 1e-05"), std::string::npos) << outcome.output;
  EXPECT_EQ(files_of_run(place / "run"), before);
  EXPECT_TRUE(read_file(place / "run/find-lr/find-lr.csv").starts_with("step,lr,loss,smoothed\n1,1e-05,"));
  EXPECT_NE(read_file(place / "run/find-lr/find-lr.svg").find("<svg"), std::string::npos);
  for (const auto& entry : fs::directory_iterator(place / "run/find-lr"))
    EXPECT_FALSE(entry.path().filename().string().starts_with("step-")) << entry.path();

  Outcome json = run_command(train + " --find-lr=1e-5:10:60 --json");
  ASSERT_EQ(json.code, 0) << json.output;
  nlohmann::json found = nlohmann::json::parse(json.output);
  EXPECT_GT(found["points"].size(), 20u);
  EXPECT_GT(found["steepest"].get<double>(), 1e-5);
  EXPECT_LT(found["steepest"].get<double>(), 1);
}

TEST(FindLr, RefusesWhatIsNoRange) {
  ScratchPlace place("find-lr-refused");
  for (const char* bad : {"--find-lr=1:1e-5", "--find-lr=fast", "--find-lr=1e-5:1:2", "--find-lr=1e-5:1 --until 2"}) {
    Outcome outcome = run_command(tiny_train(place, bad));
    EXPECT_EQ(outcome.code, 2) << bad << "\n" << outcome.output;
    EXPECT_NE(outcome.output.find("--find-lr"), std::string::npos) << outcome.output;
  }
}

}  // namespace
}  // namespace sextant
