// The goodput that a supervised run reports beside its own: plan's formula, against runs whose failures are drawn here.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "laws/economics.h"
#include "supervise/run_report.h"

namespace sextant {
namespace {

struct DrawnRun {
  int64_t steps = 4000, every = 10;
  double step = 1, save = 2, restart = 5, between = 40;  // seconds; `between` of the failures
  double first_start = 300, end = 100;
  bool strikes_restarts = true;  // or only while it trains
};

// Plays the run with exponential times between failures, and keeps of it what the supervisor would.
RunReport play(const DrawnRun& run, uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::exponential_distribution<double> next(1 / run.between);
  RunReport report{.last_step = run.steps,
                   .productive_seconds = run.step * static_cast<double>(run.steps),
                   .first_start_seconds = run.first_start,
                   .end_seconds = run.end};
  double now = run.first_start, left = next(engine);  // until the next failure
  Attempt interrupted{.trained = WallTime(), .cause = {.kind = CauseKind::killed}};
  Attempt unstarted{.cause = {.kind = CauseKind::killed}};
  int64_t saved = 0, at = 0;
  while (at < run.steps) {
    double length = run.step + ((at + 1) % run.every == 0 ? run.save : 0);
    if (left > length) {
      left -= length, now += length, ++at;
      if (at % run.every == 0) saved = at;
      continue;
    }
    now += left;
    double partial = left, outage = 0;
    report.attempts.push_back(interrupted);
    left = next(engine);
    while (run.strikes_restarts && left < run.restart) {
      outage += left;
      left = next(engine);
      report.attempts.push_back(unstarted);
    }
    outage += run.restart;
    if (run.strikes_restarts) left -= run.restart;
    now += outage;
    report.lost.starting += outage;
    report.lost.detecting += partial;  // the step that was lost
    report.steps_repeated += at - saved;
    at = saved;
  }
  report.attempts.push_back({.trained = WallTime(), .cause = {.kind = CauseKind::finished}});
  report.seconds = now + run.end;
  return report;
}

RunConfig config_of(const DrawnRun& run) {
  RunConfig config;
  config.checkpoint.every = run.every;
  return config;
}

TEST(PredictedGoodput, IsThatOfRunsWithSuchFailures) {
  for (bool strikes_restarts : {true, false})
    for (double restart : {0.5, 5.0, 40.0})
      for (double between : {20.0, 40.0, 400.0}) {
        DrawnRun run{.restart = restart, .between = between, .strikes_restarts = strikes_restarts};
        RunReport report = play(run, 7);
        EXPECT_NEAR(*report.predicted_goodput(config_of(run)), report.goodput(), 0.02)
            << restart << " s restarts, failures every " << between << " s, in restarts too: " << strikes_restarts;
      }
}

// Where the failures are drawn at a known rate, what follows from the run is what `plan` says of that rate beforehand.
TEST(PredictedGoodput, IsWhatPlanSaysBeforehand) {
  DrawnRun run{.first_start = 0, .end = 0};
  Economics plan = economics_of({.step_seconds = run.step,
                                 .tokens_per_step = 1,
                                 .token_budget = static_cast<double>(run.steps),
                                 .device_mtbf_hours = run.between / 3600,
                                 .checkpoint_seconds = run.save,
                                 .checkpoint_every = run.every,
                                 .restart_seconds = run.restart});
  RunReport report = play(run, 11);
  EXPECT_NEAR(report.goodput(), plan.goodput, 0.03);
  EXPECT_NEAR(*report.predicted_goodput(config_of(run)), plan.goodput, 0.03);
}

TEST(PredictedGoodput, TakesTheShorterIntervalOfDurableAndLocalCopies) {
  DrawnRun run{.between = 20};
  RunReport report = play(run, 3);
  RunConfig seldom;
  seldom.checkpoint.every = 100;
  RunConfig both = seldom;
  both.checkpoint.local_every = run.every;
  EXPECT_EQ(report.predicted_goodput(both), report.predicted_goodput(config_of(run)));
  EXPECT_LT(*report.predicted_goodput(seldom), 0.5 * report.goodput());
}

// One that saved and stopped because it was asked to, to go on with more hosts: its time is lost, its work is not.
TEST(PredictedGoodput, StopsThatWereAskedForUndoNothing) {
  DrawnRun run{.restart = 40, .between = 400};
  RunReport report = play(run, 5);
  double before = *report.predicted_goodput(config_of(run));
  int64_t interruptions = report.interruptions();
  Attempt asked{.trained = WallTime(), .cause = {.kind = CauseKind::stopped}, .lost = {.starting = 3000}};
  report.attempts.insert(report.attempts.begin(), asked);
  report.lost += asked.lost;
  report.seconds += 3000;
  EXPECT_EQ(report.interruptions(), interruptions);
  double work = report.productive_seconds;
  EXPECT_NEAR(*report.predicted_goodput(config_of(run)), work / (work / before + 3000), 1e-9);
}

TEST(PredictedGoodput, IsNothingWithoutInterruptedTraining) {
  DrawnRun run{.between = 1e12};
  RunReport report = play(run, 1);
  EXPECT_FALSE(report.predicted_goodput(config_of(run)));
  report.attempts.push_back({.cause = {.kind = CauseKind::launcher_failed}});
  EXPECT_FALSE(report.predicted_goodput(config_of(run)));
}

}  // namespace
}  // namespace sextant
