// Which steps are spikes, and what follows, from numbers alone.
#include "train/health/spike_watch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace sextant {
namespace {

SpikeSection spike_settings(const char* action) {
  SpikeSection settings;
  settings.action = *value_of_word<SpikeAction>(action);
  settings.window = 8;
  settings.most_skips = 3;
  settings.rate_steps = 4;
  return settings;
}

StepMetrics metrics_of(int64_t step, double loss, double norm, std::optional<double> limit = {}) {
  StepMetrics m;
  m.step = step;
  m.values.set(number::loss, loss);
  m.values.set(number::grad_norm, norm);
  m.values.set_if(number::norm_limit, limit);
  return m;
}

// Norms 1, 3, 1, 3 …: median 2, median absolute deviation 1.
void fill(SpikeWatch& watch, int64_t steps) {
  for (int64_t step = 1; step <= steps; ++step)
    EXPECT_FALSE(watch.note(metrics_of(step, 2, step % 2 == 1 ? 1 : 3))) << step;
}

TEST(SpikeWatch, LimitIsMedianAndDeviationsOfTheWindow) {
  SpikeSection settings = spike_settings("skip");
  SpikeWatch watch(settings);
  fill(watch, 7);
  EXPECT_TRUE(std::isinf(watch.policy_of(9).norm_limit)) << "the window is not full";
  watch.note(metrics_of(8, 2, 3));
  // Step 8 counts from step 10 on: when 9 is issued, a device may still be at work on it.
  EXPECT_TRUE(std::isinf(watch.policy_of(9).norm_limit));
  EXPECT_NEAR(watch.policy_of(10).norm_limit, 2 + 10 * 1.4826, 1e-5);
  EXPECT_FALSE(watch.note(metrics_of(9, 2, 1)));
  auto spike = watch.note(metrics_of(10, 2, 17));
  ASSERT_TRUE(spike);
  EXPECT_TRUE(spike->first);
  EXPECT_NE(spike->text.find("gradient norm 17 is above 16.83 (median 2 of 8 steps)"), std::string::npos)
      << spike->text;
  auto next = watch.note(metrics_of(11, 2, 17));
  ASSERT_TRUE(next);
  EXPECT_FALSE(next->first);
}

TEST(SpikeWatch, ValuesThatHardlyVaryMakeNoSpikes) {
  SpikeSection settings = spike_settings("none");
  SpikeWatch watch(settings);
  for (int64_t step = 1; step <= 9; ++step) watch.note(metrics_of(step, 2, 1));
  EXPECT_FALSE(watch.note(metrics_of(10, 2.19, 1.99)));
  EXPECT_TRUE(watch.note(metrics_of(11, 2.21, 1)));
  EXPECT_TRUE(watch.note(metrics_of(12, 2, 2.01)));
}

TEST(SpikeWatch, NotFiniteIsASpikeAndNoPartOfTheWindow) {
  SpikeSection settings = spike_settings("rewind");
  SpikeWatch watch(settings);
  EXPECT_TRUE(watch.note(metrics_of(1, std::numeric_limits<double>::quiet_NaN(), 1)));
  EXPECT_TRUE(watch.state().recent.empty());
  EXPECT_TRUE(watch.may_rewind());
}

TEST(SpikeWatch, RewindsAreLimited) {
  SpikeSection settings = spike_settings("rewind");
  settings.most_rewinds = 2;
  SpikeWatch watch(settings);
  watch.count_rewind();
  EXPECT_TRUE(watch.may_rewind());
  watch.count_rewind();
  EXPECT_FALSE(watch.may_rewind());
}

TEST(SpikeWatch, SkipsAreLimited) {
  SpikeSection settings = spike_settings("skip");
  SpikeWatch watch(settings);
  fill(watch, 9);
  std::vector<int64_t> applied;
  for (int64_t step = 10; step < 20; ++step) {
    float limit = watch.policy_of(step).norm_limit;
    if (std::isinf(limit)) applied.push_back(step);
    watch.note(metrics_of(step, 2, 1000, std::isinf(limit) ? std::nullopt : std::optional<double>(limit)));
  }
  // After 10, 11, 12 step 13 is under way before 12 is known. Then the window is of large norms.
  EXPECT_EQ(applied, (std::vector<int64_t>{14, 15}));
}

TEST(SpikeWatch, RateIsLoweredFromTheSecondStepOn) {
  SpikeSection settings = spike_settings("lower_rate");
  SpikeWatch watch(settings);
  fill(watch, 9);
  watch.note(metrics_of(10, 2, 1000));
  std::vector<double> rates;
  for (int64_t step = 11; step <= 17; ++step) rates.push_back(watch.policy_of(step).rate_factor);
  EXPECT_EQ(rates, (std::vector<double>{1, 0.5, 0.5, 0.5, 0.5, 1, 1}));
  // Extended by another one.
  for (int64_t step = 11; step <= 12; ++step) watch.note(metrics_of(step, 2, 2));
  watch.note(metrics_of(13, 2, 1000));
  EXPECT_EQ(watch.policy_of(13).rate_factor, 0.5);
  EXPECT_EQ(watch.policy_of(18).rate_factor, 0.5);
  EXPECT_EQ(watch.policy_of(19).rate_factor, 1);
}

TEST(SpikeWatch, GoesOnAsBeforeFromWhatACheckpointKeeps) {
  SpikeSection settings = spike_settings("skip");
  SpikeWatch whole(settings), first(settings), second(settings);
  for (int64_t step = 1; step <= 30; ++step) {
    StepMetrics m = metrics_of(step, 2 + 0.01 * std::sin(step), 1 + 0.3 * std::cos(3 * step) + (step == 20 ? 50 : 0));
    SpikeWatch& resumed = step <= 15 ? first : second;
    if (step == 16) second.restore(first.state());
    EXPECT_EQ(whole.policy_of(step).norm_limit, resumed.policy_of(step).norm_limit) << step;
    EXPECT_EQ(whole.note(m).has_value(), resumed.note(m).has_value()) << step;
  }
  EXPECT_EQ(whole.state(), second.state());
}

}  // namespace
}  // namespace sextant
