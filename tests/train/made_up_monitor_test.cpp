// A monitor that only this file knows, as docs/extend/monitor.md describes it: one class and its maker are all that is
// added.
#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <vector>

#include "events/run_event.h"
#include "scratch_run.h"
#include "train/rank_services.h"

namespace sextant {
namespace {

constexpr TypedStepNumber<double> kLossChange{{.name = "loss_change",
                                               .unit = "nats per token",
                                               .when = number::when::every_step,
                                               .about = "Loss of the step, minus that of the first step of the run."}};

// Steps at which the monitor of a test asks for something; 0: never.
struct Plan {
  int64_t saves_at = 0, rewinds_at = 0, stops_at = 0, skips_from = 0;
};

// Adds a number to every step, and asks for everything a monitor can ask for.
class LossChange final : public Monitor {
 public:
  explicit LossChange(const Plan& plan) : plan_(plan) {}

  void adjust(int64_t step, StepPolicy& policy) const override {
    if (plan_.skips_from > 0 && step >= plan_.skips_from) policy.norm_limit = 0;
  }
  void measure(StepMetrics& m) override {
    if (m.step == 1) first_ = m[number::loss];
    m.values.set(kLossChange, m[number::loss] - first_);
  }
  RunActions after(const StepMetrics& m) override {
    RunActions actions;
    if (m.step == plan_.saves_at) {
      actions.emplace_back(SayLine{"a line of the made-up monitor"});
      actions.emplace_back(RunEvent{.kind = EventKind::note, .step = m.step, .text = "made up"});
      actions.emplace_back(Save{});
    }
    if (m.step == plan_.rewinds_at && rewinds_++ == 0) actions.emplace_back(Rewind{m.step});
    if (m.step == plan_.stops_at) actions.emplace_back(Stop{ExitCode::stopped});
    return actions;
  }

 private:
  Plan plan_;
  double first_ = 0;
  int rewinds_ = 0;
};

class MadeUpMonitor : public testing::TestWithParam<const char*> {
 protected:
  TrainResult train_with(const Plan& plan, std::vector<std::string> settings) const {
    if (std::string_view(GetParam()) != "alone")
      settings.insert(settings.end(), {"mesh.dp=2", "mesh.tp=2", "batch.microbatch=2"});
    for (const char* own : {"train.steps=6", "batch.sequences=4", "batch.seq=16", "train.eval_every=0"})
      settings.emplace_back(own);
    TrainView view{.verbosity = Verbosity::quiet,
                   .monitors = {[plan](RankServices&) { return std::make_unique<LossChange>(plan); }}};
    return train(scratch_.config("tiny-llama.toml", settings), scratch_.root() / "run", cpu_ranks(), {}, view);
  }
  std::vector<RunEvent> events(EventKind kind) const {
    std::vector<RunEvent> found = read_events(scratch_.root() / "run");
    std::erase_if(found, [&](const RunEvent& event) { return event.kind != kind; });
    return found;
  }

  ScratchRun scratch_{"made-up-monitor"};
};

TEST_P(MadeUpMonitor, MeasuresReportsSavesAndStops) {
  AddedStepNumber added(kLossChange.number);
  TrainResult result =
      train_with({.saves_at = 2, .stops_at = 4}, {"checkpoint.every=0", "checkpoint.background=false"});
  EXPECT_EQ(result.outcome, ExitCode::stopped);
  EXPECT_EQ(result.step, 4);
  std::vector<std::string> changes = scratch_.metric("run", "loss_change"), losses = scratch_.losses("run");
  ASSERT_EQ(changes.size(), 4U);
  for (size_t i = 0; i < changes.size(); ++i)
    EXPECT_EQ(std::stod(changes[i]), std::stod(losses[i]) - std::stod(losses[0])) << i;
  ASSERT_EQ(events(EventKind::note).size(), 1U) << "once, whatever the number of ranks";
  EXPECT_EQ(events(EventKind::note)[0].text, "made up");
  EXPECT_TRUE(std::filesystem::exists(scratch_.root() / "run/step-000002/manifest.json"));
  EXPECT_TRUE(std::filesystem::exists(scratch_.root() / "run/step-000004/manifest.json")) << "what it stops at";
}

TEST_P(MadeUpMonitor, RewindsTheRunOnce) {
  TrainResult result =
      train_with({.rewinds_at = 5}, {"checkpoint.every=2", "train.spike.action=rewind", "train.spike.rewind_steps=2"});
  EXPECT_EQ(result.outcome, ExitCode::finished);
  ASSERT_EQ(events(EventKind::rewind).size(), 1U);
  EXPECT_EQ(events(EventKind::rewind)[0].details.integer("to_step"), 2);
  EXPECT_EQ(scratch_.losses("run").size(), 6U) << "each step stands once";
}

// The step is made again, and the monitor sees it again.
TEST_P(MadeUpMonitor, ARewindTakesBackTheStopOfItsStep) {
  TrainResult result = train_with({.rewinds_at = 3, .stops_at = 3}, {"checkpoint.every=2"});
  EXPECT_EQ(events(EventKind::rewind).size(), 1U);
  EXPECT_EQ(result.outcome, ExitCode::stopped);
  EXPECT_EQ(result.step, 3);
}

TEST_P(MadeUpMonitor, SkipsUpdatesOfStepsItMakes) {
  train_with({.skips_from = 4}, {"train.spike.action=skip", "checkpoint.every=0"});
  std::vector<RunEvent> skipped = events(EventKind::skipped_step);
  ASSERT_EQ(skipped.size(), 3U);
  EXPECT_EQ(skipped[0].step, 4);
}

INSTANTIATE_TEST_SUITE_P(OnOneRankAndAMesh, MadeUpMonitor, testing::Values("alone", "dp2_tp2"),
                         [](const testing::TestParamInfo<const char*>& info) { return std::string(info.param); });

}  // namespace
}  // namespace sextant
