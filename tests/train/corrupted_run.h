// Corrupted: short runs in which silent corruption is planted, or none, and what the checks say of it.
#pragma once

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "events/run_event.h"
#include "train/faults/fault.h"
#include "train/scratch_run.h"

namespace sextant {

using Overrides = std::vector<std::string>;

class Corrupted : public testing::Test {
 protected:
  explicit Corrupted(MakeExecutor executors = cpu_ranks()) : scratch_("corruption"), executors_(std::move(executors)) {}

  static Overrides with(Overrides all, const Overrides& more) {
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  RunConfig config(const Overrides& more, std::string_view file) const {
    return scratch_.config(
        file, with({"train.steps=5", "train.eval_every=0", "train.log_every=100", "model.layers=2", "batch.sequences=8",
                    "batch.microbatch=1", "batch.seq=16", "data.tokenizer_vocab=300", "train.check_replicas_every=0",
                    "checkpoint.at_end=false", "train.timeout_s=20"},
                   more));
  }

  // Message, exit code and event of a run that finds the fault.
  struct Found {
    std::string text;
    ExitCode code = ExitCode::finished;
    std::optional<RunEvent> event = {};
  };
  Found run(const Overrides& more, const std::string& fault, std::string_view file = "tiny-llama.toml") {
    std::filesystem::path out = scratch_.root() / fmt::format("run-{}", ++runs_);
    Found found;
    try {
      std::vector<Fault> faults;
      if (!fault.empty()) faults.push_back(parse_fault(fault, "test"));
      train(config(more, file), out, executors_, {}, {.verbosity = Verbosity::quiet}, faults);
    } catch (const RunError& error) {
      found = {error.what(), error.exit_code()};
    }
    for (const RunEvent& event : read_events(out))
      if (event.kind == EventKind::corruption) found.event = event;
    last_out_ = out.filename().string();
    return found;
  }

  void expect_found(const Overrides& more, const std::string& fault, int64_t rank, std::string_view check,
                    std::string_view file = "tiny-llama.toml") {
    Found found = run(more, fault, file);
    SCOPED_TRACE(fmt::format("{} with {}: {}", fault, fmt::join(more, " "), found.text));
    EXPECT_EQ(found.code, ExitCode::corruption);
    ASSERT_TRUE(found.event);
    EXPECT_EQ(found.event->step, 3);
    EXPECT_EQ(found.event->details.integer("rank"), rank);
    std::string line = event_line(*found.event);
    EXPECT_NE(line.find(fmt::format("\"check\":\"{}\"", check)), std::string::npos) << line;
    EXPECT_EQ(scratch_.losses(last_out_).size(), 2u) << "the update of step 3 is not made";
  }

  ScratchRun scratch_;
  MakeExecutor executors_;
  int runs_ = 0;
  std::string last_out_;
};

}  // namespace sextant
