// What each pipeline rank really runs, and in which order, is what the schedule says and the timeline draws.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <mutex>

#include "forwarding_executor.h"
#include "schedule/from_csv.h"
#include "schedule/timing.h"
#include "scratch_run.h"

namespace sextant {
namespace {

// The actions that were run, by rank.
class Log {
 public:
  void add(int rank, const Action& action) {
    std::lock_guard lock(mutex_);
    actions_[rank].push_back(action);
  }
  const std::vector<Action>& of(int rank) { return actions_[rank]; }

 private:
  std::mutex mutex_;
  std::map<int, std::vector<Action>> actions_;
};

// A Bound that notes what it is told to run.
class ActionNotingBound final : public ForwardingBound {
 public:
  ActionNotingBound(std::unique_ptr<Bound> bound, Log& log) : ForwardingBound(std::move(bound)), log_(log) {}
  void run(std::span<const Action> unit, Trace* trace) override {
    ForwardingBound::run(unit, trace);
    for (const Action& action : unit) log_.add(rank(), action);
  }

 private:
  Log& log_;
};

std::vector<std::string> names_of(const std::vector<Action>& actions) {
  std::vector<std::string> names;
  for (const Action& action : actions) names.push_back(name_of(action) + (action.with_next ? " +" : ""));
  return names;
}

class Orders : public testing::TestWithParam<const char*> {};

TEST_P(Orders, WhatRunsIsWhatIsDrawn) {
  std::string name = GetParam();
  bool two_chunks = name == "interleaved" || name == "breadth-first" || name == "zbv" || name == "dualpipev";
  PipelineShape shape{.ranks = 2, .chunks = two_chunks ? 2 : 1, .microbatches = 8};
  PipelineSchedule expected = make_schedule(name == "csv" ? "gpipe" : name, shape);
  ScratchRun scratch("order");
  std::vector<std::string> settings{"mesh.pp=2",
                                    "model.layers=4",
                                    "batch.seq=16",
                                    "batch.sequences=8",
                                    "batch.microbatch=1",
                                    "train.steps=1",
                                    "optimizer.warmup=0",
                                    "train.eval_every=0",
                                    "train.timeout_s=30",
                                    "pipeline.schedule=" + name,
                                    fmt::format("pipeline.chunks={}", shape.chunks)};
  if (name == "csv") {
    // An order of our own that no generator makes: the first forwards of two microbatches, then one for one.
    std::filesystem::path file = scratch.root() / "own.csv";
    expected = schedule_from_csv(csv_text(make_schedule("1f1b", shape)));
    std::swap(expected.ranks[0][1], expected.ranks[0][2]);
    std::ofstream(file) << csv_text(expected);
    settings.push_back("pipeline.file=" + file.string());
    expected = schedule_from_csv(csv_text(expected));
  }

  Log log;
  RunConfig run = scratch.config("tiny-llama.toml", settings);
  train(run, scratch.root() / "run", [&](const RankContext& context, int threads) {
    return std::make_unique<ForwardingExecutor>(make_cpu_executor(threads, context), [&](std::unique_ptr<Bound> bound) {
      return std::make_unique<ActionNotingBound>(std::move(bound), log);
    });
  });
  TimedSchedule drawn = simulate_schedule(expected, uniform_durations(shape));
  for (int rank = 0; rank < shape.ranks; ++rank) {
    std::vector<Action> planned;
    for (const TimedAction& timed : drawn.ranks[static_cast<size_t>(rank)]) planned.push_back(timed.action);
    EXPECT_EQ(names_of(planned), names_of(expected.ranks[static_cast<size_t>(rank)]));
    planned.push_back({RegionKind::update, 0, 0});
    EXPECT_EQ(names_of(log.of(rank)), names_of(planned)) << "rank " << rank;
  }
}

INSTANTIATE_TEST_SUITE_P(Schedules, Orders,
                         testing::Values("gpipe", "1f1b", "interleaved", "breadth-first", "zb-h1", "zbv",
                                         "combined-1f1b", "dualpipev", "csv"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace sextant
