// Summaries and the test for differences against numbers worked out another way, and the loop that takes samples.
#include "bench/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

namespace sextant {
namespace {

TEST(Statistics, SummaryOfKnownSamples) {
  std::vector<double> samples{5, 1, 4, 2, 3, 100};
  Summary s = summary_of(samples);
  EXPECT_EQ(s.count, 6);
  EXPECT_DOUBLE_EQ(s.mean, 115.0 / 6);
  EXPECT_DOUBLE_EQ(s.median, 3.5);
  EXPECT_DOUBLE_EQ(s.best, 1);
  EXPECT_DOUBLE_EQ(s.worst, 100);
  EXPECT_DOUBLE_EQ(s.spread, 1.4826 * 1.5);  // away from 3.5: 0.5 0.5 1.5 1.5 2.5 96.5
  EXPECT_LE(s.low, s.median);
  EXPECT_GE(s.high, s.median);
  EXPECT_EQ(summary_of({}), Summary{});
}

TEST(Statistics, TheIntervalHoldsTheMedianAndNarrows) {
  std::vector<double> few, many;
  for (int i = 0; i < 20; ++i) few.push_back(i / 20.0);
  for (int i = 0; i < 2000; ++i) many.push_back(i / 2000.0);
  Summary a = summary_of(few), b = summary_of(many);
  EXPECT_LT(b.high - b.low, (a.high - a.low) / 5);
  EXPECT_LT(b.low, 0.5);
  EXPECT_GT(b.high, 0.5);
}

TEST(Statistics, QuantilesBetweenSamples) {
  EXPECT_DOUBLE_EQ(quantile_of({4, 1, 3, 2}, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(quantile_of({4, 1, 3, 2}, 0), 1);
  EXPECT_DOUBLE_EQ(quantile_of({4, 1, 3, 2}, 1), 4);
  EXPECT_DOUBLE_EQ(quantile_of({}, 0.5), 0);
}

double u_of(const std::vector<double>& a, const std::vector<double>& b) {
  double u = 0;
  for (double x : a)
    for (double y : b) u += x > y ? 1 : x == y ? 0.5 : 0;
  return u;
}

// Every way to deal the same numbers to two sets of these sizes: how many are at least as far from the middle.
double dealt_p(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> all(a);
  all.insert(all.end(), b.begin(), b.end());
  double middle = static_cast<double>(a.size() * b.size()) / 2, own = std::abs(u_of(a, b) - middle);
  std::vector<int> of_a(all.size());
  std::fill(of_a.end() - static_cast<std::ptrdiff_t>(a.size()), of_a.end(), 1);
  int far = 0, ways = 0;
  do {
    std::vector<double> first, second;
    for (size_t i = 0; i < all.size(); ++i) (of_a[i] ? first : second).push_back(all[i]);
    ++ways;
    far += std::abs(u_of(first, second) - middle) >= own - 1e-9 ? 1 : 0;
  } while (std::next_permutation(of_a.begin(), of_a.end()));
  return static_cast<double>(far) / ways;
}

TEST(Statistics, MannWhitneyIsExactForSmallSets) {
  EXPECT_NEAR(mann_whitney_p(std::vector<double>{1, 2, 3, 4, 5}, std::vector<double>{6, 7, 8, 9, 10}), 2.0 / 252,
              1e-12);
  std::vector<double> a{1.1, 2.2, 3.3, 9}, b{2, 3, 4, 5, 6, 7};
  EXPECT_NEAR(mann_whitney_p(a, b), dealt_p(a, b), 1e-12);
  std::vector<double> c{0.5, 8, 9.5, 7.1, 3}, d{2, 6.5, 4, 5, 1, 0.1};
  EXPECT_NEAR(mann_whitney_p(c, d), dealt_p(c, d), 1e-12);
}

TEST(Statistics, MannWhitneyWithTiesComesNear) {
  std::vector<double> a{1, 2, 2, 3, 7, 8, 8}, b{2, 3, 4, 5, 5, 9, 9, 9};
  EXPECT_NEAR(mann_whitney_p(a, b), dealt_p(a, b), 0.05);
  EXPECT_DOUBLE_EQ(mann_whitney_p(std::vector<double>{3, 3, 3}, std::vector<double>{3, 3}), 1);
  EXPECT_DOUBLE_EQ(mann_whitney_p({}, a), 1);
}

// Ranks 1, 3, 3, 5.5 against 3, 5.5, 7.5, 7.5: U is 2.5 of 16, the ties take 36 / 56 off 9, and z is 5 / sqrt(11.14).
TEST(Statistics, MannWhitneyWithTiesByHand) {
  EXPECT_NEAR(mann_whitney_p(std::vector<double>{1, 2, 2, 3}, std::vector<double>{2, 3, 4, 4}),
              std::erfc(5 / std::sqrt(16.0 / 12 * (9 - 36.0 / 56)) / std::sqrt(2.0)), 1e-12);
}

TEST(Statistics, MannWhitneyOfManySeesAShiftAndNothingElse) {
  std::vector<double> a, b, shifted;
  for (int i = 0; i < 100; ++i) {
    a.push_back(1 + 0.01 * ((i * 37) % 100) / 100);
    b.push_back(1 + 0.01 * ((i * 61 + 13) % 100) / 100 + 1e-6);
    shifted.push_back(b.back() + 0.005);
  }
  EXPECT_GT(mann_whitney_p(a, b), 0.5);
  EXPECT_LT(mann_whitney_p(a, shifted), 1e-6);
}

TEST(Repeated, WarmsUntilTimesSettle) {
  int calls = 0;
  auto call = [&] { return ++calls <= 30 ? 1.0 - 0.03 * calls : 0.1; };  // a clock that climbs
  warm_up(call, {.warm_seconds = 60}, {});
  EXPECT_GE(calls, 30);
  EXPECT_LE(calls, 50);
}

TEST(Repeated, TakesEnoughSamplesAndNoMore) {
  // The seconds that a call returns count, not the fact that it returns at once: such calls are taken a hundred at a
  // time.
  std::vector<double> seconds = repeated([] { return 0.01; }, {.least = 10, .most = 1000, .seconds = 30}, {});
  EXPECT_EQ(seconds.size(), 1000u);
  seconds = repeated([] { return 1.0; }, {.least = 10, .most = 1000, .seconds = 30}, {});
  EXPECT_EQ(seconds.size(), 100u);
  seconds = repeated([] { return 1e-6; }, {.least = 10, .most = 40, .seconds = 100}, {});
  EXPECT_EQ(seconds.size(), 40u);
}

TEST(Repeated, WhatStandsAroundACallDoesNotGoOnForever) {
  auto slow = [] {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return 1e-6;
  };
  auto begin = std::chrono::steady_clock::now();
  std::vector<double> seconds = repeated(slow, {.least = 5, .most = 100000, .seconds = 0.01, .warm_seconds = 0.01}, {});
  EXPECT_GE(seconds.size(), 5u);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));  // all samples would take 200
}

TEST(Repeated, StoppedItHasWhatItHas) {
  int calls = 0;
  Watch watch{.stop = [&] { return calls >= 25; }, .say = [](const std::string&) {}};
  std::vector<double> seconds =
      repeated([&] { return ++calls, 0.04; }, {.least = 100, .most = 1000, .seconds = 100}, watch);
  EXPECT_EQ(calls, 25);
  EXPECT_EQ(seconds.size(), 15u);  // ten warmed up
}

}  // namespace
}  // namespace sextant
