// Memory of other software: intervals learned from errors that are made up and from those of the file that comes with
// the program, what fits by them, and how much a search leaves free.
#include "plan/memory_interval.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/rng.h"
#include "config/load.h"
#include "config/resolve.h"
#include "cost/machine_file.h"
#include "cost/planned_target.h"
#include "cost/software_profile_file.h"
#include "plan/foreign_memory.h"
#include "plan/headroom.h"
#include "plan/run_plan.h"

namespace sextant {
namespace {

HeldOutError memory_error(const std::string& source, const std::string& device, const std::string& software,
                          double log_error) {
  return {.source = source, .traits = {.device = device, .software = software}, .log_error = log_error};
}

// Four sources of 120 rows, each with a software of its own; the first estimates a fifth too much, within 5 %.
std::vector<HeldOutError> made_memory_errors(uint64_t seed) {
  std::vector<HeldOutError> errors;
  for (int source = 0; source < 4; ++source) {
    Random random(seed, "memory errors", static_cast<uint64_t>(source));
    for (uint64_t i = 0; i < 120; ++i)
      errors.push_back(memory_error(fmt::format("source {}", source), i % 2 == 0 ? "even" : "odd",
                                    fmt::format("software {}", source),
                                    source == 0 ? 0.2 + 0.02 * random.normal(i) : 0.1 * random.normal(i)));
  }
  return errors;
}

TEST(MemoryInterval, HoldsTheShareThatItSays) {
  for (double share : {0.5, 0.8, 0.9}) {
    double sum = 0;
    for (uint64_t seed = 1; seed <= 5; ++seed) sum += memory_coverage(made_memory_errors(seed), share).share() / 5;
    EXPECT_NEAR(sum, share, 0.06) << share;
  }
}

TEST(MemoryInterval, IsThatOfTheSoftwareWhereEnoughRowsHaveIt) {
  MemoryIntervalModel model(made_memory_errors(1));
  MemoryInterval biased = model.interval("even", "software 0", 0.8);
  EXPECT_EQ(biased.of, MemoryErrorsOf::software_on_device);
  EXPECT_EQ(biased.rows, 60u);
  EXPECT_LT(biased.most, 0.9);  // what is always estimated too high is measured lower
  EXPECT_GT(biased.least, 0.7);
  EXPECT_EQ(model.interval("another", "software 0", 0.8).of, MemoryErrorsOf::software);
  MemoryInterval unknown = model.interval("even", "another", 0.8);
  EXPECT_EQ(unknown.of, MemoryErrorsOf::all);
  EXPECT_EQ(unknown.rows, 480u);
  EXPECT_LT(unknown.least, 1);
  EXPECT_GT(unknown.most, 1.03);
  EXPECT_GT(unknown.most / unknown.least, biased.most / biased.least);
}

// By hand: of ten ratios 1 to 10, the next one among them, 80 % are at most the ninth: 9 of 11.
TEST(MemoryInterval, UpperEndIsAConformalQuantile) {
  std::vector<HeldOutError> errors;
  for (int i = 1; i <= 10; ++i) errors.push_back(memory_error("s", "d", "w", -std::log(i)));
  MemoryIntervalModel model(errors);
  EXPECT_NEAR(model.upper("d", "w", 0.8).most, 9, 1e-9);
  EXPECT_NEAR(model.upper("d", "w", 0.5).most, 6, 1e-9);
  MemoryInterval both = model.interval("d", "w", 0.6);  // a fifth below, a fifth above
  EXPECT_NEAR(both.least, 2, 1e-9);
  EXPECT_NEAR(both.most, 9, 1e-9);
}

// As the last `validate --hold-out --memory --write` left them.
TEST(MemoryInterval, OfPublishedRunsIsCalibrated) {
  MemoryIntervalModel model = load_memory_interval_model();
  ASSERT_GT(model.errors().size(), 90u);
  Coverage coverage = memory_coverage(model.errors(), kIntervalShare);
  EXPECT_GE(coverage.share(), 0.72);
  EXPECT_LE(coverage.share(), 0.88);
  EXPECT_LT(coverage.median_log_half, std::log(1.3));
}

TEST(MemoryFitTest, StraddlesTheLimit) {
  MemoryInterval interval{.share = 0.8, .least = 0.8, .most = 1.25};
  EXPECT_EQ(memory_fit(64, 80, interval), MemoryFit::fits);
  EXPECT_EQ(memory_fit(65, 80, interval), MemoryFit::may_fit);
  EXPECT_EQ(memory_fit(100, 80, interval), MemoryFit::may_fit);
  EXPECT_EQ(memory_fit(101, 80, interval), MemoryFit::does_not_fit);
  EXPECT_EQ(memory_fit(80, 80, std::nullopt), MemoryFit::fits);
  EXPECT_EQ(memory_fit(81, 80, std::nullopt), MemoryFit::does_not_fit);
}

TEST(HeadroomTest, IsAPercentage) {
  EXPECT_DOUBLE_EQ(parse_headroom("5%", "--headroom"), 0.05);
  EXPECT_DOUBLE_EQ(parse_headroom("0 %", "--headroom"), 0);
  EXPECT_DOUBLE_EQ(parse_headroom("12.5%", "--headroom"), 0.125);
  for (const char* bad : {"", "%", "5", "0.05", "-1%", "100%", "nan%", "inf%", "5%%", "five%", " 5%", "5GB"})
    EXPECT_THROW(parse_headroom(bad, "--headroom"), UserError) << bad;
}

TEST(HeadroomTest, ComesFromWhatIsKnown) {
  MemoryIntervalModel errors(made_memory_errors(1));
  HeadroomQuestion question{.basis = MemoryBasis::exact, .device = "even", .software = "another", .errors = &errors};
  Headroom own = headroom_for(question);
  EXPECT_EQ(own.from, HeadroomFrom::own);
  EXPECT_GT(own.share, 0);
  EXPECT_LT(own.share, 0.03);
  question.basis = MemoryBasis::estimate;
  Headroom learned = headroom_for(question);
  EXPECT_EQ(learned.from, HeadroomFrom::errors);
  EXPECT_NEAR(learned.share, 1 - 1 / errors.upper("even", "another", 0.9).most, 1e-12);
  question.software = "software 0";  // takes less than is estimated
  EXPECT_EQ(headroom_for(question).share, 0);
  double asked = 0.2;
  question.asked = &asked;
  EXPECT_EQ(headroom_for(question).share, 0.2);
  EXPECT_EQ(headroom_for(question).from, HeadroomFrom::option);
  EXPECT_EQ(headroom_for({.basis = MemoryBasis::programs, .errors = &errors}).from, HeadroomFrom::none);
}

class MemoryOfOthers : public testing::Test {
 protected:
  RunPlan planned(const SoftwareProfile& profile) const {
    LoweredRun lowered = lower_run(run_, resolve_model(run_), planned_target(profile), Checks::none);
    return make_plan(
        {.run = run_, .lowered = lowered, .machine = &machine_, .profile = &profile, .intervals = &intervals_});
  }

  const RunConfig run_ = parse_config(
      "[model]\narchitecture = \"llama\"\nlayers = 2\nhidden = 128\nheads = 4\nvocab = 512\n[batch]\nseq = 128\n",
      "run.toml");
  Machine machine_ = load_machine("a100-80-sxm");
  const SoftwareProfile megatron_ = profile_named(load_profiles(), "megatron-2021");
  const IntervalModel intervals_ = load_interval_model();
};

TEST_F(MemoryOfOthers, OurOwnIsExact) {
  RunPlan plan = planned(own_profile());
  EXPECT_EQ(plan.memory_basis, MemoryBasis::exact);
  EXPECT_FALSE(plan.memory_interval);
  EXPECT_NE(plan_text(plan).find("to the byte"), std::string::npos);
  nlohmann::json json = nlohmann::json::parse(plan_json(plan));
  EXPECT_EQ(json["memory"]["known"], "exact");
  EXPECT_FALSE(json["memory"].contains("interval"));
}

TEST_F(MemoryOfOthers, IsEstimatedWithAnInterval) {
  RunPlan plan = planned(megatron_);
  ASSERT_TRUE(plan.memory_interval);
  LoweredRun lowered = lower_run(run_, resolve_model(run_), planned_target(megatron_), Checks::none);
  EXPECT_NEAR(static_cast<double>(plan.peak_bytes), foreign_memory(lowered, run_, megatron_, machine_).total(), 8);
  nlohmann::json memory = nlohmann::json::parse(plan_json(plan))["memory"];
  EXPECT_EQ(memory["known"], "estimate");
  EXPECT_EQ(memory["fit"], "fits");
  EXPECT_LT(memory["interval"]["low_bytes"].get<double>(), memory["interval"]["high_bytes"].get<double>());
  EXPECT_NE(plan_text(plan).find("published runs with any software"), std::string::npos);
}

// A device whose memory is between the ends of the interval may fit the run, and the plan has times; a run whose whole
// interval is above the device's memory does not fit.
TEST_F(MemoryOfOthers, MayFit) {
  RunPlan wide = planned(megatron_);
  auto bytes = static_cast<double>(wide.peak_bytes);
  machine_.device.memory_bytes = 0.5 * (wide.memory_interval->low(bytes) + wide.memory_interval->high(bytes));
  RunPlan tight = planned(megatron_);
  EXPECT_EQ(tight.device_fit(), MemoryFit::may_fit);
  EXPECT_TRUE(tight.step);
  EXPECT_NE(plan_text(tight).find("it may fit"), std::string::npos);
  machine_.device.memory_bytes = 0.99 * wide.memory_interval->low(bytes);
  RunPlan over = planned(megatron_);
  EXPECT_EQ(over.device_fit(), MemoryFit::does_not_fit);
  EXPECT_FALSE(over.step);
  EXPECT_NE(plan_text(over).find("or more are needed"), std::string::npos);
}

}  // namespace
}  // namespace sextant
