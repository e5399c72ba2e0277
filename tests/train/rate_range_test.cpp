// The learning-rate range test: its rates, what it suggests of a known curve, when it ends, and what it leaves alone.
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "scratch_run.h"
#include "train/rate_range_test.h"

namespace sextant {
namespace {

TEST(RateRangeTest, RatesRiseExponentially) {
  RateRamp ramp = parse_rate_ramp("1e-5:0.1:41");
  EXPECT_EQ(ramp.steps, 41);
  EXPECT_NEAR(ramp.rate_of(1), 1e-5, 1e-12);
  EXPECT_NEAR(ramp.rate_of(21), 1e-3, 1e-9);
  EXPECT_NEAR(ramp.rate_of(41), 0.1, 1e-9);
  for (const char* bad :
       {"1e-5", "0.1:1e-5", "0:1", "1e-5:0.1:5", "a:b", "1e-5:0.1:40:1", "nan:1", "1e-5:inf", "train.steps=5"})
    EXPECT_THROW(parse_rate_ramp(bad), UserError) << bad;
}

// A loss that falls most about 1e-3, is least at 1e-2, and diverges behind.
double known_loss(double lr) {
  double x = std::log10(lr);
  return 6 - 2 / (1 + std::exp(-8 * (x + 3))) + (lr > 1e-2 ? 40 * (lr - 1e-2) : 0);
}

TEST(RateRangeTest, SuggestsTheSteepestRateAndStopsBehindTheLeast) {
  RateRamp ramp{.low = 1e-6, .high = 1, .steps = 400};
  RateRangeTest test(ramp);
  for (int64_t step = 1; step <= ramp.steps && !test.is_over(); ++step) {
    StepMetrics m{.step = step};
    m.values.set(number::lr, ramp.rate_of(step));
    m.values.set(number::loss, known_loss(ramp.rate_of(step)));
    test.note(m);
  }
  EXPECT_TRUE(test.is_over());
  EXPECT_LT(test.points().back().lr, 0.3);
  std::optional<SuggestedRates> rates = suggested_rates(test.points());
  ASSERT_TRUE(rates);
  // The average of losses lags by some steps of 3.5 %.
  EXPECT_GT(rates->steepest, 0.9e-3);
  EXPECT_LT(rates->steepest, 2e-3);
  EXPECT_GT(rates->tenth_of_lowest, 0.9e-3);
  EXPECT_LT(rates->tenth_of_lowest, 2e-3);
}

TEST(RateRangeTest, SuggestsNothingWhereNoRateTrains) {
  std::vector<RatePoint> points;
  for (int64_t step = 1; step <= 50; ++step) {
    double loss = 6 + 0.01 * static_cast<double>(step);
    points.push_back({step, RateRamp{}.rate_of(step), loss, loss});
  }
  EXPECT_FALSE(suggested_rates(points));
}

TEST(RateRangeTest, ARunFollowsTheRampAndEndsWhereTheLossIsNotFinite) {
  ScratchRun scratch("range");
  RunConfig run =
      scratch.config("tiny-llama.toml", {"train.steps=30", "optimizer.lr=1e5", "optimizer.schedule=constant",
                                         "optimizer.warmup=0", "optimizer.name=sgd", "optimizer.clip=0",
                                         "train.eval_every=0", "checkpoint.at_end=false", "batch.seq=16"});
  TrainView view{.verbosity = Verbosity::quiet, .ramp = RateRamp{.low = 1e-4, .high = 1e5, .steps = 30}};
  TrainResult result = train(run, scratch.root() / "run", cpu_ranks(), {}, view);
  EXPECT_EQ(result.outcome, ExitCode::finished);
  ASSERT_GT(result.rates.size(), 5u);
  EXPECT_LT(result.rates.size(), 30u);
  for (size_t i = 0; i < result.rates.size(); ++i)
    EXPECT_NEAR(result.rates[i].lr, view.ramp->rate_of(static_cast<int64_t>(i) + 1), 1e-9 * result.rates[i].lr);
  EXPECT_TRUE(result.checkpoint.empty());
}

}  // namespace
}  // namespace sextant
