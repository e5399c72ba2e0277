// `sextant sweep`: halving keeps the best, whose bits are those of a run without stops; a sweep that is asked to stop
// goes on later; one bad run does not end the others; what cannot be swept is refused.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "expectations.h"
#include "started_command.h"

namespace sextant {
namespace {

class SweepVerb : public testing::Test {
 protected:
  SweepVerb() : place_(std::string("sweep-") + testing::UnitTest::GetInstance()->current_test_info()->name()) {}

  std::string settings(const std::string& extra) const {
    return fmt::format(
        "{} data.cache={} data.stories_bytes=60000 train.threads=1 optimizer.warmup=0 model.layers=1 model.hidden=32 "
        "batch.microbatch=1 batch.seq=32 {}",
        config_path("tiny-llama.toml"), place_ / "cache", extra);
  }
  std::string losses(const std::string& run) const {
    std::string found;
    std::istringstream lines(read_file(place_ / (run + "/metrics.jsonl")));
    for (std::string line; std::getline(lines, line);) found += nlohmann::json::parse(line)["loss"].dump() + " ";
    return found;
  }

  ScratchPlace place_;
};

TEST_F(SweepVerb, HalvingKeepsTheBestAndItsBits) {
  std::string grid =
      fmt::format("sweep {} --jobs 2 --halving 2 --out {} --json",
                  settings("train.steps=40 train.eval_every=0 optimizer.lr=1e-5,1e-2,1e4"), place_ / "s");
  Outcome outcome = run_command(grid);
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  nlohmann::json found = nlohmann::json::parse(outcome.output);
  EXPECT_EQ(found["best"], "optimizer.lr=1e-2");
  ASSERT_EQ(found["runs"].size(), 3u);
  EXPECT_EQ(found["runs"][0]["state"], "finished");
  EXPECT_EQ(found["runs"][0]["steps"], 40);
  EXPECT_LT(found["runs"][1]["steps"], 40);
  ASSERT_EQ(run_command(fmt::format("train {} --out {} -q",
                                    settings("train.steps=40 train.eval_every=0 optimizer.lr=1e-2"), place_ / "plain"))
                .code,
            0);
  EXPECT_EQ(losses("s/optimizer.lr=1e-2"), losses("plain"));
  // Nothing is left to do.
  std::string before = read_file(place_ / "s/optimizer.lr=1e-2/run.log");
  EXPECT_EQ(nlohmann::json::parse(run_command(grid).output)["best"], "optimizer.lr=1e-2");
  EXPECT_EQ(read_file(place_ / "s/optimizer.lr=1e-2/run.log"), before);
}

TEST_F(SweepVerb, AFailedRunDoesNotEndTheOthers) {
  std::filesystem::create_directories(place_ / "s/train.seed=1");
  std::filesystem::create_directories(place_ / "s/train.seed=1/config.toml");  // where a file must be written
  Outcome outcome = run_command(fmt::format("sweep {} --out {} --json",
                                            settings("train.steps=2 train.eval_every=0 train.seed=1,2"), place_ / "s"));
  EXPECT_EQ(outcome.code, 3) << outcome.output;
  nlohmann::json found = nlohmann::json::parse(outcome.output);
  EXPECT_EQ(found["best"], "train.seed=2");
  EXPECT_EQ(found["runs"][1]["state"], "failed");
}

// Losses per token of different tokenizers are no measure of one against the other.
TEST_F(SweepVerb, TokenizersAreRankedByBitsPerByte) {
  std::string command =
      fmt::format("sweep {} --out {} --json ", settings("train.steps=12 data.tokenizer_vocab=300,700"), place_ / "s");
  Outcome outcome = run_command(command + "train.eval_every=6");
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  nlohmann::json found = nlohmann::json::parse(outcome.output), runs = found["runs"];
  EXPECT_EQ(found["ranked_by"], "bits_per_byte");
  EXPECT_NE(found["why"].get<std::string>().find("different tokenizers"), std::string::npos) << found;
  EXPECT_LT(runs[0]["bits_per_byte"], runs[1]["bits_per_byte"]);
  EXPECT_EQ(found["best"], runs[0]["run"]);
  EXPECT_EQ(found["comparisons"][0]["basis"]["measure"], "bits_per_byte");
  command = fmt::format("sweep {} --out {} --json train.eval_every=0 ",
                        settings("train.steps=12 data.tokenizer_vocab=300,700"), place_ / "unmeasured");
  found = nlohmann::json::parse(run_command(command).output);
  EXPECT_TRUE(found["ranked_by"].is_null() && found["best"].is_null()) << found;
}

TEST_F(SweepVerb, WhatCannotBeSweptIsRefused) {
  expect_refusal(run_command("sweep " + settings("train.steps=2")), 2, {"no key has several values", "sextant train"});
  expect_refusal(run_command("sweep " + settings("optimizer.lr=1,x")), 2, {"optimizer.lr=x", "expected a number"});
  expect_refusal(run_command("sweep " + settings("train.steps=2,3") + " --halving 2"), 2, {"--halving", "2 and of 3"});
  expect_refusal(run_command("train " + settings("train.steps=2") + " --until 3"), 2, {"--until", "1 to 2"});
}

}  // namespace
}  // namespace sextant
