#include "laws/economics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/rng.h"
#include "laws/refused.h"
#include "laws/run_amounts.h"

namespace sextant {
namespace {

// Expected time of a piece of work in the exponential model, per second of work.
double exact_cost(double work, double save, double mtbf) {
  return mtbf * std::expm1((work + save) / mtbf) / work;
}

// By trying every interval of a fine grid.
double exact_best(double save, double mtbf) {
  double best = 1, least = 1e300;
  for (double log_work = std::log(1e-3 * mtbf); log_work < std::log(10 * mtbf); log_work += 1e-4)
    if (double cost = exact_cost(std::exp(log_work), save, mtbf); cost < least) least = cost, best = std::exp(log_work);
  return best;
}

TEST(CheckpointInterval, DalyIsWhereTheExactModelIsLeast) {
  for (double save : {0.1, 1.0, 10.0, 100.0}) {
    double best = exact_best(save, 1000), daly = daly_interval(save, 1000), young = young_interval(save, 1000);
    EXPECT_NEAR(daly / best, 1, 0.005) << save;
    EXPECT_LE(std::abs(daly - best), std::abs(young - best)) << save;
    EXPECT_NEAR(exact_cost(daly, save, 1000) / exact_cost(best, save, 1000), 1, 1e-5) << save;
  }
}

TEST(CheckpointInterval, DalyStaysGoodWhenSavingTakesAsLongAsMachinesHold) {
  for (double save : {500.0, 1000.0, 2000.0, 5000.0}) {
    double best = exact_best(save, 1000);
    EXPECT_NEAR(exact_cost(daly_interval(save, 1000), save, 1000) / exact_cost(best, save, 1000), 1, 0.02) << save;
  }
}

TEST(CheckpointInterval, YoungByHand) {
  EXPECT_DOUBLE_EQ(young_interval(50, 10000), 1000);
}

// BLOOM saved for 40 seconds every 3 hours of its 90 days.
TEST(Economics, BloomsCheckpoints) {
  Economics e = economics_of({.step_seconds = 107.6,
                              .tokens_per_step = 1,
                              .token_budget = 72'000,
                              .device_mtbf_hours = 1e15,
                              .checkpoint_seconds = 40,
                              .checkpoint_every = 100});
  EXPECT_NEAR(*e.days_with_failures, 90, 1e-6);
  EXPECT_EQ(e.saves, 720);
  EXPECT_NEAR(e.saves * 40 / 3600, 8.0, 1e-9);
  EXPECT_NEAR(100 * e.lost.checkpoints, 0.370, 0.0005);
}

TEST(Economics, AnyOtherIntervalLosesMore) {
  RunEconomicsInput run{.step_seconds = 1,
                        .tokens_per_step = 1,
                        .token_budget = 1e7,
                        .devices = 1000,
                        .checkpoint_seconds = 60,
                        .restart_seconds = 300};
  Economics best = economics_of(run);
  for (double factor : {0.5, 0.8, 1.25, 2.0}) {
    run.checkpoint_every = static_cast<int64_t>(factor * static_cast<double>(best.checkpoint_steps));
    EXPECT_LT(economics_of(run).goodput, best.goodput) << factor;
  }
}

// Throughputs printed elsewhere count 8·N per token, a forward pass more than the 6·N counted here.
TEST(Economics, ModelFlopsOfKnownRuns) {
  auto eight = [](const RunEconomicsInput& run) {
    return economics_of(run).model_flops_per_device_second * 8 / 6 / 1e12;
  };
  EXPECT_NEAR(
      eight({.step_seconds = 127, .tokens_per_step = 1024 * 2048, .token_budget = 1e9, .devices = 64, .params = 52e9}),
      107.33455, 1e-5);
  EXPECT_NEAR(eight({.step_seconds = 18.350,
                     .tokens_per_step = 1024 * 3584,
                     .token_budget = 1e9,
                     .devices = 512,
                     .params = 80e9}),
              250, 0.01);
  EXPECT_NEAR(eight({.step_seconds = 0.420, .tokens_per_step = 4096, .token_budget = 1e9, .devices = 1, .params = 2e9}),
              156, 0.1);
}

RunEconomicsInput llama3_like() {
  return {.step_seconds = 4,
          .tokens_per_step = 16e6,
          .token_budget = 16e12,
          .devices = 16384,
          .device_watts = 700,
          .price_per_device_hour = 2,
          .checkpoint_seconds = 20,
          .restart_seconds = 600};
}

TEST(Economics, TheArithmeticOfARun) {
  RunEconomicsInput run = llama3_like();
  run.device_mtbf_hours = 1e12;  // nothing fails
  run.checkpoint_seconds = 0;
  Economics e = economics_of(run);
  EXPECT_EQ(e.steps, 1'000'000);
  EXPECT_EQ(e.nodes, 2048);
  EXPECT_NEAR(e.days, 4e6 / 86400, 1e-9);
  EXPECT_NEAR(*e.days_with_failures, e.days, 1e-3);
  EXPECT_NEAR(*e.device_hours / (4e6 / 3600 * 16384), 1, 1e-6);
  EXPECT_NEAR(*e.cost / *e.device_hours, 2, 1e-9);
  EXPECT_NEAR(*e.energy_mwh / (*e.device_hours * 700e-6 * 1.2), 1, 1e-9);
  EXPECT_NEAR(e.goodput, 1, 1e-5);
}

// 54 days at Llama 3's rate have its 419 interruptions, and its effective training time was above 90 %.
TEST(Economics, Llama3sFailures) {
  EXPECT_NEAR(kLlama3DeviceMtbfHours, 50'700, 50);
  Economics e = economics_of(llama3_like());
  EXPECT_NEAR(e.mtbf_hours, 54 * 24 / 419.0, 1e-9);
  EXPECT_NEAR(*e.failures, *e.days_with_failures * 419 / 54, 1e-6);
  EXPECT_NEAR(e.goodput + e.lost.checkpoints + e.lost.rework + e.lost.restarts, 1, 1e-12);
  EXPECT_NEAR(e.goodput, 0.9, 0.02);
}

struct Played {
  double seconds = 0, failures = 0, rework = 0, restarts = 0;
};

// One run played through, second by second of the model, with failures drawn at random.
Played play(const RunEconomicsInput& run, double work, double mtbf, uint64_t seed) {
  Random random(seed, "failures");
  uint64_t draws = 0;
  auto next_failure = [&] { return -mtbf * std::log(1 - random.uniform(draws++)); };
  Played played;
  double pieces = run.token_budget / run.tokens_per_step * run.step_seconds / work,
         piece = work + run.checkpoint_seconds;
  double left = next_failure();  // until the next failure
  for (double done = 0; done < pieces;) {
    if (left >= piece) {
      left -= piece, played.seconds += piece, ++done;
      continue;
    }
    played.seconds += left, played.rework += left, ++played.failures;
    for (left = next_failure(); left < run.restart_seconds; left = next_failure())
      played.seconds += left, played.restarts += left, ++played.failures;
    left -= run.restart_seconds, played.seconds += run.restart_seconds, played.restarts += run.restart_seconds;
  }
  return played;
}

TEST(Economics, ExpectationsAgreeWithRunsPlayedThrough) {
  RunEconomicsInput run = llama3_like();
  run.device_mtbf_hours = 10'000;  // 37 minutes for all: failures during restarts and saves matter
  run.checkpoint_seconds = 120;
  Economics e = economics_of(run);
  double work = static_cast<double>(e.checkpoint_steps) * run.step_seconds;
  Played sum;
  const int kRuns = 40;
  for (uint64_t seed = 0; seed < kRuns; ++seed) {
    Played played = play(run, work, e.mtbf_hours * 3600, seed);
    sum.seconds += played.seconds / kRuns, sum.failures += played.failures / kRuns;
    sum.rework += played.rework / kRuns, sum.restarts += played.restarts / kRuns;
  }
  EXPECT_NEAR(*e.days_with_failures * 86400 / sum.seconds, 1, 0.01);
  EXPECT_NEAR(*e.failures / sum.failures, 1, 0.01);
  EXPECT_NEAR(e.lost.rework * *e.days_with_failures * 86400 / sum.rework, 1, 0.02);
  EXPECT_NEAR(e.lost.restarts * *e.days_with_failures * 86400 / sum.restarts, 1, 0.02);
}

TEST(Economics, ARunThatCannotEndSaysSo) {
  RunEconomicsInput run = llama3_like();
  run.device_mtbf_hours = 1;
  Economics e = economics_of(run);
  EXPECT_EQ(e.goodput, 0);
  EXPECT_FALSE(e.days_with_failures || e.cost || e.failures || e.energy_mwh);
  EXPECT_NE(economics_text(e).find("does not end"), std::string::npos);
  EXPECT_NE(economics_json(e).find("\"days_with_failures\": null"), std::string::npos);
}

// Seconds on one device: five of them for the save at the end are what the run was for, and not lost.
TEST(Economics, AShortRunSavesAtTheEndAndLosesNothing) {
  RunEconomicsInput run{.step_seconds = 0.0018,
                        .tokens_per_step = 1024,
                        .token_budget = 700 * 1024,
                        .device_watts = 700,
                        .price_per_device_hour = 2.5,
                        .device_mtbf_hours = 50'000,
                        .checkpoint_seconds = 5,
                        .restart_seconds = 600};
  Economics e = economics_of(run);
  EXPECT_FALSE(e.saves_between());
  EXPECT_NEAR(e.goodput, 1, 1e-5);
  EXPECT_EQ(e.lost.checkpoints, 0);
  EXPECT_NEAR(*e.device_hours * 3600, 700 * 0.0018, 1e-4);
  std::string text = economics_text(e);
  for (const char* part : {"at the end only: none is due before it (Daly 2006: every 11 h 4",
                           "1.3 s of steps, 1.3 s with failures", "fewer than 0.01 expected", " Wh"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  for (const char* part : {"saving", "goodput", "MWh", "e-0"})
    EXPECT_EQ(text.find(part), std::string::npos) << part << "\n" << text;
  EXPECT_EQ(nlohmann::json::parse(economics_json(e))["checkpoint"]["interval"], "at the end only");

  run.token_budget *= 1e5;  // a day and a half: two pieces of work, and their saves count
  e = economics_of(run);
  EXPECT_TRUE(e.saves_between());
  EXPECT_NEAR(e.lost.checkpoints / (e.saves * 5 / (*e.days_with_failures * 86400)), 1,
              0.02);  // the last piece is shorter
  EXPECT_NE(economics_text(e).find("goodput"), std::string::npos);

  run.checkpoint_every = e.steps;
  EXPECT_NE(economics_text(economics_of(run)).find("at the end only, as configured"), std::string::npos);
}

TEST(Economics, TextNamesTheIntervalAndItsSource) {
  std::string text = economics_text(economics_of(llama3_like()));
  for (const char* part : {"16 T tokens: 1,000,000 steps", "16,384 in 2,048 nodes", "one every 3 h 05 m",
                           "419 in 54 days", "Daly 2006", "Young 1974", "goodput", "$", "MWh"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST(Economics, JsonHoldsTheSameNumbers) {
  Economics e = economics_of(llama3_like());
  nlohmann::json json = nlohmann::json::parse(economics_json(e));
  EXPECT_NEAR(json["cost"].get<double>() / *e.cost, 1, 1e-9);
  EXPECT_EQ(json["checkpoint"]["every_steps"], e.checkpoint_steps);
  EXPECT_EQ(json["checkpoint"]["interval"], "Daly 2006, higher order");
  EXPECT_NEAR(json["lost"]["rework"].get<double>(), e.lost.rework, 1e-9);
  EXPECT_TRUE(json["model_flops_per_device_second"].is_null());
}

TEST(Economics, UnknownPricesAreNotShown) {
  RunEconomicsInput run = llama3_like();
  run.price_per_device_hour = run.device_watts = 0;
  std::string text = economics_text(economics_of(run));
  EXPECT_EQ(text.find("cost"), std::string::npos);
  EXPECT_EQ(text.find("energy"), std::string::npos);
}

TEST(Economics, NonsenseIsRefused) {
  auto refuse = [](auto change, const char* part) {
    RunEconomicsInput run = llama3_like();
    change(run);
    expect_refused([&] { economics_of(run); }, part);
  };
  refuse([](RunEconomicsInput& run) { run.step_seconds = 0; }, "time of a step");
  refuse([](RunEconomicsInput& run) { run.tokens_per_step = -1; }, "tokens per step");
  refuse([](RunEconomicsInput& run) { run.token_budget = std::nan(""); }, "token budget");
  refuse([](RunEconomicsInput& run) { run.token_budget = 1e40; }, "fewer than 1e15 steps");
  refuse([](RunEconomicsInput& run) { run.devices = 0; }, "devices");
  refuse([](RunEconomicsInput& run) { run.devices_per_node = 0; }, "devices per node");
  refuse([](RunEconomicsInput& run) { run.pue = 0.9; }, "PUE");
  refuse([](RunEconomicsInput& run) { run.checkpoint_seconds = -1; }, "seconds per checkpoint");
  refuse([](RunEconomicsInput& run) { run.checkpoint_every = -1; }, "steps between checkpoints");
}

// A run of any length is told in units that a person reads: no powers of ten.
TEST(RunAmounts, FitTheirSize) {
  EXPECT_EQ(human_days(54), "54 days");
  EXPECT_EQ(human_days(0.5), "12 h 00 m");
  EXPECT_EQ(human_days(1.5 / 86400), "1.5 s");
  EXPECT_EQ(human_days(4.77e-08), "4.12 ms");
  EXPECT_EQ(human_energy(11000), "11,000 MWh");
  EXPECT_EQ(human_energy(5.2e-3), "5.2 kWh");
  EXPECT_EQ(human_energy(9.62e-10), "3.46 J");
  EXPECT_EQ(human_cost(1.25e6), "$1.25 M");
  EXPECT_EQ(human_cost(0.35), "$0.35");
  EXPECT_EQ(human_cost(2e-6), "less than $0.01");
}

}  // namespace
}  // namespace sextant
