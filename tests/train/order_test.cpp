// The actions that each pipeline rank really runs, and their order, are those of the schedule and of the drawn
// timeline.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <mutex>
#include <set>

#include "forwarding_executor.h"
#include "run/programs.h"
#include "run/resolve_spec.h"
#include "schedule/folded.h"
#include "schedule/from_csv.h"
#include "schedule/schedules.h"
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

void run_and_note(const ScratchRun& scratch, const std::vector<std::string>& settings, Log& log) {
  RunConfig run = scratch.config("tiny-llama.toml", settings);
  train(run, scratch.root() / "run", [&](const RankContext& context, int threads) {
    return std::make_unique<ForwardingExecutor>(make_cpu_executor(threads, context), [&](std::unique_ptr<Bound> bound) {
      return std::make_unique<ActionNotingBound>(std::move(bound), log);
    });
  });
}

class Orders : public testing::TestWithParam<const char*> {};

TEST_P(Orders, WhatRunsIsWhatIsDrawn) {
  std::string name = GetParam();
  const ScheduleDef* def = find_schedule(name);
  bool two_chunks = def && def->chunks.allows(2);
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
  run_and_note(scratch, settings, log);
  TimedSchedule drawn = simulate_schedule(expected, uniform_durations(shape));
  for (int rank = 0; rank < shape.ranks; ++rank) {
    std::vector<Action> planned;
    for (const TimedAction& timed : drawn.ranks[static_cast<size_t>(rank)]) planned.push_back(timed.action);
    EXPECT_EQ(names_of(planned), names_of(expected.ranks[static_cast<size_t>(rank)]));
    planned.push_back({RegionKind::update, 0, 0});
    EXPECT_EQ(names_of(log.of(rank)), names_of(planned)) << "rank " << rank;
  }
}

// Both copies of a pipeline run one program, each for its own microbatches: the ranks of the drawing are the positions
// and copies of the mesh.
TEST(OrdersOfCopies, BothCopiesRunWhatIsDrawn) {
  ScratchRun scratch("copies");
  const std::vector<std::string> settings{"mesh.pp=4",
                                          "model.layers=4",
                                          "batch.seq=16",
                                          "batch.sequences=8",
                                          "batch.microbatch=1",
                                          "train.steps=1",
                                          "optimizer.warmup=0",
                                          "train.eval_every=0",
                                          "train.timeout_s=30",
                                          "pipeline.chunks=2",
                                          "pipeline.schedule=dualpipe"};
  Log log;
  run_and_note(scratch, settings, log);
  RunConfig run = scratch.config("tiny-llama.toml", settings);
  RunShape shape = run_shape(run, resolve_spec(run));
  PipelineSchedule drawn = make_schedule("dualpipe", {4, 2, 8});
  EXPECT_EQ(shape.mesh.text(), "pp=2 pp_copy=2 dp=1 cp=1 tp=1");
  EXPECT_EQ(unfolded(shape.pipeline), drawn);
  std::set<int> rows;
  for (int rank = 0; rank < 4; ++rank) {
    int copy = coordinate_of(shape.mesh, rank)[static_cast<size_t>(*shape.mesh.copies_axis())];
    int row = unfolded_rank(shape.pipeline.shape, stage_rank_of(shape.mesh, rank), copy);
    std::vector<Action> ran = log.of(rank);
    ASSERT_FALSE(ran.empty());
    ran.pop_back();  // the update
    for (Action& action : ran) action = unfolded_action(shape.pipeline.shape, copy, action);
    EXPECT_EQ(names_of(ran), names_of(drawn.ranks[static_cast<size_t>(row)])) << "rank " << rank;
    rows.insert(row);
  }
  EXPECT_EQ(rows.size(), 4u);
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
