// A small supervised run in a place of its own, and what it left there.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "checkout.h"
#include "processes.h"
#include "started_command.h"

namespace sextant {

inline const std::string kLong = "train.steps=1000000 train.log_every=1000000 ";

class RunVerb : public testing::Test {
 protected:
  RunVerb() : place_(std::string("run-") + testing::UnitTest::GetInstance()->current_test_info()->name()) {}

  // The verb's arguments, for a small run that saves every second step.
  std::string arguments(const std::string& verb, const std::string& extra, const std::string& out = "run") const {
    return fmt::format(
        "{} {} --out {} data.cache={} data.stories_bytes=60000 train.threads=1 optimizer.warmup=0 model.layers=1 "
        "model.hidden=32 "
        "batch.microbatch=1 batch.seq=32 train.eval_every=0 train.steps=8 train.timeout_s=20 checkpoint.every=2 "
        "checkpoint.background=false {}",
        verb, config_path("tiny-llama.toml"), place_ / out, place_ / "cache", extra);
  }
  std::vector<std::string> losses(const std::string& out = "run") const {
    std::vector<std::string> found;
    std::istringstream lines(read_file(place_ / (out + "/metrics.jsonl")));
    for (std::string line; std::getline(lines, line);) {
      nlohmann::json json = nlohmann::json::parse(line);
      found.push_back(fmt::format("{} {}", json["step"].dump(), json["loss"].dump()));
    }
    return found;
  }
  std::vector<std::string> undisturbed(const std::string& extra) {
    Outcome outcome = run_command(arguments("train", extra, "plain"));
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    return losses("plain");
  }
  nlohmann::json report(const Outcome& outcome) {
    return nlohmann::json::parse(outcome.output.substr(std::min(outcome.output.find('{'), outcome.output.size())),
                                 nullptr, false);
  }
  int events(const std::string& kind) const {
    return static_cast<int>(count_of(read_file(place_ / "run/events.jsonl"), fmt::format("\"event\":\"{}\"", kind)));
  }
  void expect_nothing_left() {
    EXPECT_TRUE(comes_true([&] { return processes_in(place_.path(), Counted::ranks) == 0; }));
    EXPECT_FALSE(std::filesystem::exists(place_ / "run/supervisor.json"));
  }

  ScratchPlace place_;
};

class RunUnderMpi : public RunVerb {
 protected:
  void SetUp() override {
    if (!mpirun_works()) GTEST_SKIP() << "this build has no MPI, or there is no mpirun";
  }
};

}  // namespace sextant
