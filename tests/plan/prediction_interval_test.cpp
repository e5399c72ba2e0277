// Intervals of predictions: their coverage on errors that are made up, and on those of the file that comes with the
// program.
#include "plan/prediction_interval.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "base/rng.h"

namespace sextant {
namespace {

// Ten sources of 40 rows on two devices, the second three times as uncertain.
std::vector<HeldOutError> made_errors(uint64_t seed) {
  std::vector<HeldOutError> errors;
  for (int source = 0; source < 10; ++source) {
    Random random(seed, "errors", static_cast<uint64_t>(source));
    for (uint64_t i = 0; i < 40; ++i) {
      bool second = i % 2 == 1;
      errors.push_back({.source = fmt::format("source {}", source),
                        .traits = {.device = second ? "uncertain" : "certain",
                                   .software = "s",
                                   .models = "dense",
                                   .size = "2-10 B",
                                   .dominated = "compute"},
                        .log_error = (second ? 0.15 : 0.05) * random.normal(i)});
    }
  }
  return errors;
}

TEST(PredictionInterval, HoldsTheShareThatItSays) {
  for (double share : {0.5, 0.8, 0.9}) {
    double sum = 0;
    for (uint64_t seed = 1; seed <= 5; ++seed) sum += coverage_of(made_errors(seed), share).share() / 5;
    EXPECT_NEAR(sum, share, 0.04) << share;
  }
}

// Sources of one row each with the same traits, in which case all of the rule is two lines: a score is an error over
// the mean of the others', and the interval is the k-th smallest score times the mean, with k the first at share·(n+1)
// or above.
TEST(PredictionInterval, IsTheConformalQuantile) {
  for (int n : {4, 9, 19, 30})
    for (double share : {0.5, 0.75, 0.8, 0.9}) {
      Random random(7, "quantile", static_cast<uint64_t>(n));
      std::vector<HeldOutError> errors;
      double sum = 0;
      for (int i = 0; i < n; ++i) {
        double error = (i % 2 == 0 ? 1 : -1) * (0.01 + 0.4 * random.uniform(static_cast<uint64_t>(i)));
        errors.push_back(
            {.source = fmt::format("source {}", i), .traits = made_errors(1)[0].traits, .log_error = error});
        sum += std::abs(error);
      }
      std::vector<double> scores;
      for (const HeldOutError& error : errors)
        scores.push_back(std::abs(error.log_error) / ((sum - std::abs(error.log_error)) / (n - 1)));
      std::ranges::sort(scores);
      auto k = static_cast<size_t>(std::ceil(share * (n + 1) - 1e-9));
      double expected = scores[std::min(scores.size(), k) - 1] * sum / n;
      EXPECT_NEAR(IntervalModel(errors).interval(errors[0].traits, share).log_half, expected, 1e-9)
          << n << " " << share;
    }
}

TEST(PredictionInterval, IsWiderWhereErrorsAreLarger) {
  IntervalModel model(made_errors(1));
  RunTraits traits = model.errors().front().traits;
  double certain = model.interval(traits).log_half;
  EXPECT_LT(certain, model.interval(traits, 0.9).log_half);
  traits.device = "uncertain";
  double uncertain = model.interval(traits).log_half;
  EXPECT_GT(uncertain, 1.3 * certain);
  traits.device = "never seen";
  double unknown = model.interval(traits).log_half;
  EXPECT_GT(unknown, certain);
  EXPECT_LT(unknown, uncertain);
  EXPECT_EQ(model.interval(traits).of_device, 0u);
}

TEST(PredictionInterval, CallsNearPredictionsEqual) {
  PredictionInterval interval{.share = 0.8, .log_half = std::log(1.1)};
  EXPECT_NEAR(interval.low(2), 2 / 1.1, 1e-12);
  EXPECT_NEAR(interval.high(2), 2.2, 1e-12);
  EXPECT_TRUE(interval.equal(1, 1.09));
  EXPECT_TRUE(interval.equal(1.09, 1));
  EXPECT_FALSE(interval.equal(1, 1.11));
}

TEST(PredictionInterval, ErrorsAreReadAsWritten) {
  std::vector<HeldOutError> errors = made_errors(1);
  errors[0].source = "a \"quoted\", source";
  std::vector<HeldOutError> read = parse_held_out(held_out_csv(errors), "made.csv");
  ASSERT_EQ(read.size(), errors.size());
  for (size_t i = 0; i < read.size(); ++i) {
    EXPECT_EQ(read[i].source, errors[i].source);
    EXPECT_EQ(read[i].traits, errors[i].traits);
    EXPECT_NEAR(read[i].log_error, errors[i].log_error, 5e-5);
  }
  EXPECT_THROW(parse_held_out("source,device\na,b\n", "short.csv"), UserError);
  EXPECT_THROW(parse_held_out("source,device,software,models,size,dominated,log_error\na,b,c,d,e,f,much\n", "word.csv"),
               UserError);
}

// Of the errors of all sources that were held out, as the last `validate --hold-out --write` left them.
TEST(PredictionInterval, OfPublishedRunsIsCalibrated) {
  IntervalModel model = load_interval_model();
  ASSERT_GT(model.errors().size(), 300u);
  Coverage coverage = coverage_of(model.errors(), kIntervalShare);
  EXPECT_GE(coverage.share(), 0.76);
  EXPECT_LE(coverage.share(), 0.86);
  EXPECT_LT(coverage.median_log_half, std::log(1.35));  // an interval that holds everything would say nothing
}

// Seconds go where they are waited for.
TEST(PredictionInterval, NamesWhatDominates) {
  SimResult result{.seconds = 10, .ranks = {{.compute = 9, .bubble = 1}}};
  EXPECT_EQ(dominated_by(result), "compute");
  result.ranks[0] = {.compute = 5, .exposed = {{"dp", 1.5}, {"tp", 1}}, .bubble = 2.4, .host = 0.1};
  EXPECT_EQ(dominated_by(result), "messages");
  result.ranks[0] = {.compute = 5, .bubble = 2.4, .host = 2.6};
  EXPECT_EQ(dominated_by(result), "host");
}

}  // namespace
}  // namespace sextant
