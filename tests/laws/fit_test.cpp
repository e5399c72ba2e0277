// Runs drawn from known laws must give these laws back.
#include "laws/fit.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "laws/minimise.h"
#include "laws/refused.h"

namespace sextant {
namespace {

// IsoFLOP profiles as in Hoffmann's figure 3: nine budgets, seven sizes around the best one at each.
std::vector<LossRun> isoflop_runs(const ParametricLaw& law, double noise, uint64_t seed) {
  std::vector<LossRun> runs;
  Random random(seed, "noise");
  for (double compute : {6e18, 1e19, 3e19, 6e19, 1e20, 3e20, 6e20, 1e21, 3e21})
    for (double step : {-1.2, -0.8, -0.4, 0.0, 0.4, 0.8, 1.2}) {
      double params = law.split().params_at(compute) * std::exp(step), tokens = compute / 6 / params;
      double error = noise * random.normal(runs.size());
      runs.push_back({params, tokens, law.loss(params, tokens) * std::exp(error)});
    }
  return runs;
}

TEST(Minimise, RunsWithoutNoiseGiveTheLawBack) {
  for (const ParametricLaw& law : {hoffmann_printed(), hoffmann_tex(), besiroglu()}) {
    LawConstants found = minimise(isoflop_runs(law, 0, 1), 1e-3, std::nullopt);
    EXPECT_NEAR(found.E, law.constants.E, 1e-5) << law.name;
    EXPECT_NEAR(found.A / law.constants.A, 1, 1e-4);
    EXPECT_NEAR(found.B / law.constants.B, 1, 1e-4);
    EXPECT_NEAR(found.alpha, law.constants.alpha, 1e-5);
    EXPECT_NEAR(found.beta, law.constants.beta, 1e-5);
  }
}

TEST(Minimise, OtherTasksThanLanguageToo) {
  for (const LawConstants& truth : {LawConstants{0.02, 3, 50, 0.6, 0.25}, LawConstants{5, 2000, 9, 0.5, 0.12}}) {
    ParametricLaw law{.name = "some", .source = "", .constants = truth, .standard_errors = std::nullopt};
    std::vector<LossRun> runs;
    for (double params : {1e5, 1e6, 1e7, 1e8})
      for (double tokens : {1e6, 1e7, 1e8, 1e9}) runs.push_back({params, tokens, law.loss(params, tokens)});
    LawConstants found = minimise(runs, 1e-3, std::nullopt);
    EXPECT_NEAR(found.alpha, truth.alpha, 1e-4);
    EXPECT_NEAR(found.beta, truth.beta, 1e-4);
    EXPECT_NEAR(found.E, truth.E, 1e-3);
  }
}

TEST(Minimise, OneDivergedRunHardlyMatters) {
  std::vector<LossRun> runs = isoflop_runs(besiroglu(), 0.001, 3);
  LawConstants without = minimise(runs, 1e-3, std::nullopt);
  runs[20].loss *= 1.5;
  LawConstants with = minimise(runs, 1e-3, std::nullopt);
  EXPECT_NEAR(with.alpha, without.alpha, 0.01);
  EXPECT_NEAR(with.beta, without.beta, 0.01);
}

bool covers(const LawFit& fit, double truth, const std::function<double(const ParametricLaw&)>& quantity) {
  Interval range = interval_of(fit, quantity);
  EXPECT_LT(range.low, range.high);
  return range.low <= truth && truth <= range.high;
}

// Of 90 % intervals of eight sets of runs, some may miss; most may not.
TEST(Fit, NoisyRunsGiveIntervalsThatHoldTheTruth) {
  ParametricLaw truth = besiroglu();
  int alpha = 0, beta = 0, floor = 0, exponent = 0;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    LawFit fit = fit_law(isoflop_runs(truth, 0.003, seed), "runs.csv", {.resamples = 60});
    alpha += covers(fit, truth.constants.alpha, [](const ParametricLaw& law) { return law.constants.alpha; });
    beta += covers(fit, truth.constants.beta, [](const ParametricLaw& law) { return law.constants.beta; });
    floor += covers(fit, truth.constants.E, [](const ParametricLaw& law) { return law.constants.E; });
    exponent += covers(fit, truth.split().exponent, [](const ParametricLaw& law) { return law.split().exponent; });
    EXPECT_NEAR(fit.law.split().exponent, truth.split().exponent, 0.03);
    EXPECT_NEAR(fit.law.constants.E, truth.constants.E, 0.1);
    EXPECT_NEAR(fit.rms_log_error, 0.003, 0.001);
  }
  for (int covered : {alpha, beta, floor, exponent}) EXPECT_GE(covered, 5);
}

TEST(Fit, TheSameSeedGivesTheSameIntervals) {
  std::vector<LossRun> runs = isoflop_runs(besiroglu(), 0.01, 5);
  auto low = [&](uint64_t seed) {
    LawFit fit = fit_law(runs, "runs.csv", {.resamples = 10, .seed = seed});
    return interval_of(fit, [](const ParametricLaw& law) { return law.constants.alpha; }).low;
  };
  EXPECT_EQ(low(1), low(1));
  EXPECT_NE(low(1), low(2));
}

TEST(Fit, AnIntervalLeavesOutATwentiethAtEachEnd) {
  LawFit fit;
  for (int i = 0; i <= 100; ++i) {
    LawConstants constants;
    constants.alpha = i * 37 % 101;  // 0 to 100, in some order
    fit.resamples.push_back(constants);
  }
  Interval range = interval_of(fit, [](const ParametricLaw& law) { return law.constants.alpha; });
  EXPECT_EQ(range.low, 5);
  EXPECT_EQ(range.high, 95);
}

TEST(Fit, KnowsHowFarTheRunsWent) {
  LawFit fit = fit_law(isoflop_runs(besiroglu(), 0.003, 1), "runs.csv", {.resamples = 1});
  EXPECT_NEAR(fit.largest_compute, 3e21, 1e12);
  EXPECT_EQ(fit.runs, 63);
  EXPECT_EQ(fit.resamples.size(), 1u);
}

void expect_refusal(const std::vector<LossRun>& runs, const std::string& part) {
  expect_refused([&] { fit_law(runs, "mine.csv"); }, "mine.csv: " + part);
}

TEST(Fit, RunsThatDetermineNoLawAreRefused) {
  std::vector<LossRun> few(5, LossRun{1e8, 1e9, 3});
  expect_refusal({}, "0 runs; expected at least 6");
  expect_refusal(few, "5 runs; expected at least 6");
  std::vector<LossRun> same_size, two_sizes, same_length, same_ratio;
  for (double factor : {1.0, 2.0, 4.0, 8.0, 16.0, 32.0}) {
    same_size.push_back({1e8, factor * 1e9, 3});
    two_sizes.push_back({factor < 4 ? 1e8 : 2e8, factor * 1e9, 3});
    same_length.push_back({factor * 1e8, 1e9, 3});
    same_ratio.push_back({factor * 1e8, factor * 2e9, 4 - factor / 100});
  }
  expect_refusal(same_size, "all runs have the same number of parameters");
  expect_refusal(two_sizes, "the runs have only 2 sizes");
  expect_refusal(same_length, "all runs have the same number of tokens");
  expect_refusal(same_ratio, "all runs have the same tokens per parameter");
}

}  // namespace
}  // namespace sextant
