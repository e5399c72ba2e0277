// Answers against looking at everything: plans of every count of devices, of presets that were refused, and laws in
// closed form. Machines are small enough that each plan takes milliseconds.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "answers/fewest_devices.h"
#include "answers/largest_preset.h"
#include "answers/loss_cost.h"
#include "answers/what_if.h"
#include "base/error.h"
#include "cost/software_profile_file.h"
#include "models/presets.h"

namespace sextant {
namespace {

Machine asked_machine(double memory_bytes) {
  Machine machine;
  machine.name = "asked", machine.device.name = "asked";
  machine.device.units = 8, machine.device.clock_hz = 1e9;
  machine.device.peaks = {{"bf16", 2e12}, {"fp32", 2e11}};
  machine.device.memory_bytes = memory_bytes, machine.device.memory_bytes_per_s = 1e11;
  machine.devices_per_node = 2;
  machine.levels = {{.name = "node", .devices = 2, .link = {2e10, 2e-6}},
                    {.name = "cluster", .devices = 0, .link = {1e9, 5e-6}}};
  machine.attention["cudnn"] = {0.5, 0.5, 0.4, 0.4};
  machine.context_bytes = 1e6;
  machine.price_per_hour = 1.5, machine.mtbf_hours = 5e4;
  return machine;
}

const IntervalModel& asked_intervals() {
  static const IntervalModel model = load_interval_model();
  return model;
}

AskedPlace place_with(double memory_bytes, const std::vector<std::string>& only = {}) {
  return {.machine = asked_machine(memory_bytes),
          .profile = own_profile(),
          .limits = LayoutLimits(only, "--only"),
          .intervals = &asked_intervals()};
}

// Small, and quick to plan for.
AskedRun small_run() {
  std::vector<std::string> overrides{"batch.seq=256", "batch.sequences=48"};
  return asked_preset("pythia-70m", overrides, 1);
}

const std::vector<std::string> kQuickLayouts{"tp=1",         "cp=1",          "zero=0",
                                             "microbatch=1", "schedule=1f1b", "recompute=none"};

TEST(DeviceCounts, AreDivisorsOfANodeThenWholeNodes) {
  EXPECT_EQ(device_counts(8, 40), (std::vector<int64_t>{1, 2, 4, 8, 16, 24, 32, 40}));
  EXPECT_EQ(device_counts(2, 5), (std::vector<int64_t>{1, 2, 4}));
  EXPECT_EQ(device_counts(8, 3), (std::vector<int64_t>{1, 2}));
}

class Deadline : public testing::Test {
 protected:
  static constexpr int64_t kMostTried = 16;
  static constexpr double kDeadlineTokens = 1e9;
  const AskedPlace place_ = place_with(4e9, kQuickLayouts);
  const AskedRun asked_ = small_run();

  // By a plan of every count, without a limit of time.
  std::vector<std::pair<int64_t, double>> days_of_all() const {
    std::vector<std::pair<int64_t, double>> all;
    for (int64_t devices : device_counts(2, kMostTried)) try {
        auto plan = planned_run({.asked = asked_, .place = place_, .devices = devices, .tokens = kDeadlineTokens});
        all.emplace_back(devices, *plan->layout.economics->days_with_failures);
      } catch (const UserError&) {  // the batch cannot be shared by so many
      }
    return all;
  }
};

TEST_F(Deadline, IsMetByTheAnswerAndByNoSmallerCount) {
  auto all = days_of_all();
  ASSERT_GE(all.size(), 4u);
  double slowest = 0, fastest = 1e300;
  for (auto [devices, days] : all) slowest = std::max(slowest, days), fastest = std::min(fastest, days);
  ASSERT_GT(slowest, 3 * fastest);
  int64_t before = 0;
  for (double share : {1.01, 0.6, 0.35, 0.2}) {
    double deadline = std::max(share * slowest, 1.001 * fastest);
    FewestDevices answer = fewest_devices(
        {.asked = asked_, .place = place_, .tokens = kDeadlineTokens, .days = deadline, .most_devices = kMostTried});
    auto first = std::ranges::find_if(all, [&](const auto& one) { return one.second <= deadline; });
    ASSERT_NE(first, all.end());
    EXPECT_EQ(answer.plan.devices, first->first) << "deadline " << deadline;
    EXPECT_DOUBLE_EQ(*answer.plan.layout.economics->days_with_failures, first->second);
    EXPECT_LE(answer.least, answer.plan.devices);
    EXPECT_GE(answer.plan.devices, before) << "an earlier deadline needs no fewer";
    before = answer.plan.devices;
    EXPECT_TRUE(!answer.next_less || answer.next_less->outcome != DeadlineOutcome::met);
  }
}

TEST_F(Deadline, ThatCannotBeMetIsRefused) {
  try {
    fewest_devices({.asked = asked_, .place = place_, .tokens = 1e15, .days = 1, .most_devices = kMostTried});
    FAIL() << "a deadline was met that no device can";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("more than 16 devices"), std::string::npos) << error.what();
  }
}

TEST(Largest, FitsAndWhatIsLargerDoesNot) {
  AskedPlace place = place_with(3.2e9);
  std::vector<std::string> overrides{"batch.seq=128", "batch.sequences=8"};
  LargestPreset answer = largest_preset({.place = place, .devices = 1, .overrides = overrides});
  EXPECT_LE(static_cast<double>(answer.plan.layout.peak_bytes), place.machine.device.memory_bytes);
  ASSERT_FALSE(answer.refused.empty());
  // All presets that are larger were refused, each for a reason.
  size_t larger = 0;
  for (const Preset& preset : presets())
    larger += asked_preset(preset.name, overrides, 1).parameters > answer.plan.parameters ? 1 : 0;
  EXPECT_GE(answer.refused.size(), larger);
  // The next larger one is refused by a search of all of its layouts too.
  const RefusedPreset& next = answer.refused.back();
  EXPECT_GE(next.parameters, answer.plan.parameters);
  AskedRun asked = asked_preset(next.preset, overrides, 1);
  EXPECT_THROW(planned_run({.asked = asked, .place = place, .devices = 1}), DoesNotFit) << next.preset;
}

TEST(Largest, SaysWhatIsWrongWithTheQuestion) {
  AskedPlace place = place_with(3.2e9);
  try {
    largest_preset({.place = place, .devices = 1, .overrides = {"batch.sqe=128"}});
    FAIL() << "an unknown key was taken";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("sqe"), std::string::npos) << error.what();
  }
}

TEST(WhatIfAnswer, EachRowIsThePlanOfItsChange) {
  AskedPlace place = place_with(4e9, kQuickLayouts);
  std::vector<std::string> overrides{"batch.seq=256", "batch.sequences=48"};
  WhatIfQuestion question{
      .base = {.model = "pythia-70m", .overrides = overrides, .place = place, .devices = 4},
      .tokens = 1e9,
      .changes = changes_of({"price=x2", "price=4.5", "network=x0.25", "batch.seq=512", "devices=2"}, "--change")};
  WhatIf answer = what_if(question);
  ASSERT_EQ(answer.rows.size(), 6u);
  const PlannedRun& first = *answer.rows[0].plan;
  // Twice the price is twice the cost, and no other layout.
  EXPECT_DOUBLE_EQ(*cost_ratio(answer, answer.rows[1]), 2);
  EXPECT_EQ(answer.rows[1].plan->layout.overrides, first.layout.overrides);
  EXPECT_DOUBLE_EQ(*cost_ratio(answer, answer.rows[2]), 3);
  // A slower network is no faster.
  EXPECT_LT(*speed_ratio(answer, answer.rows[3]), 1);
  // Longer sequences, and as many tokens: the plan of a run that was asked for so.
  std::vector<std::string> longer{"batch.seq=512", "batch.sequences=24"};
  AskedRun asked_longer = asked_preset("pythia-70m", longer, 4);
  auto plan_longer = planned_run({.asked = asked_longer, .place = place, .devices = 4, .tokens = 1e9});
  ASSERT_TRUE(answer.rows[4].plan);
  EXPECT_EQ(answer.rows[4].plan->sequences, 24);
  EXPECT_DOUBLE_EQ(answer.rows[4].plan->layout.seconds, plan_longer->layout.seconds);
  EXPECT_FALSE(answer.rows[5].plan->tokens_per_s() > first.tokens_per_s());
  // The figures of the row equal those of a plan of the changed question.
  Machine slow = with_network(place.machine, "x0.25");
  EXPECT_DOUBLE_EQ(slow.levels[1].link.bytes_per_s, 0.25e9);
  EXPECT_DOUBLE_EQ(slow.levels[0].link.bytes_per_s, 2e10);
  AskedPlace changed = place;
  changed.machine = slow;
  AskedRun asked = asked_preset("pythia-70m", overrides, 4);
  auto plan = planned_run({.asked = asked, .place = changed, .devices = 4, .tokens = 1e9});
  EXPECT_DOUBLE_EQ(plan->layout.seconds, answer.rows[3].plan->layout.seconds);
  // A network of so many GB/s of a node, shared by its devices.
  EXPECT_DOUBLE_EQ(with_network(place.machine, "5").levels[1].link.bytes_per_s, 2.5e9);
  // Text and JSON have a row for each.
  nlohmann::ordered_json json = what_if_json(answer);
  ASSERT_EQ(json["rows"].size(), 6u);
  EXPECT_DOUBLE_EQ(json["rows"][3]["plan"]["step_s"].get<double>(), plan->layout.seconds);
  EXPECT_TRUE(json["rows"][1]["equals_first"].get<bool>());
  std::string text = what_if_text(answer);
  for (const WhatIfRow& row : answer.rows) EXPECT_NE(text.find(row.change), std::string::npos);
}

TEST(WhatIfAnswer, RefusesWhatIsNoChange) {
  for (const char* text : {"", "price", "price=", "=3", "colour=red", "price=2,,3", "price=2,"})
    EXPECT_THROW(changes_of({text}, "--change"), UserError) << text;
  AskedPlace place = place_with(4e9, kQuickLayouts);
  ChangeableQuestion base{.model = "pythia-70m", .overrides = {"batch.seq=256"}, .place = place, .devices = 2};
  for (const char* text : {"price=x0", "price=-1", "price=xx", "price=nan", "price=inf", "devices=0", "devices=1.5",
                           "devices=1e99", "network=fast", "batch.seq=0", "batch.seq=1000", "batch.seq=x2",
                           "batch.sqe=3", "machine=abacus", "software=abacus"})
    EXPECT_THROW(with_change(base, changes_of({text}, "--change").front()), UserError) << text;
  Machine alone = place.machine;
  alone.levels.resize(1);
  EXPECT_THROW(with_network(alone, "x2"), UserError);
}

TEST(CostOfLoss, FollowsTheLaw) {
  ParametricLaw law = besiroglu();
  double params = 7e7, tokens = 1e9;
  for (double points : {0.01, 0.05}) {
    double until = *tokens_for_points(law, tokens, points);
    EXPECT_NEAR(law.loss(params, until), law.loss(params, tokens) - points, 1e-9);
  }
  EXPECT_FALSE(tokens_for_points(law, tokens, 100)) << "below what the law's data term can give";

  AskedPlace place = place_with(4e9, kQuickLayouts);
  AskedRun asked = small_run();
  LossCost answer = loss_cost({.asked = asked, .place = place, .devices = 2, .tokens = tokens, .law = law});
  double step_tokens = 256 * 48, seconds = answer.plan.layout.seconds;
  for (size_t i = 0; i < answer.rows.size(); ++i) {
    const LossCostRow& row = answer.rows[i];
    EXPECT_DOUBLE_EQ(row.loss, law.loss(static_cast<double>(asked.active), row.tokens));
    // Failures are rare here: the cost is that of the steps, within a percent.
    double of_steps = row.tokens / step_tokens * seconds / 3600 * 2 * 1.5;
    EXPECT_NEAR(*row.cost / of_steps, 1, 0.02);
    // The next point costs what its tokens do.
    double more = *tokens_for_points(law, row.tokens, kPointOfLoss) - row.tokens;
    EXPECT_NEAR(*row.next_point / (more / step_tokens * seconds / 3600 * 2 * 1.5), 1, 0.02);
    if (i > 0) {
      EXPECT_LT(row.loss, answer.rows[i - 1].loss);
      EXPECT_GT(*row.next_point, *answer.rows[i - 1].next_point) << "each further point costs more";
    }
  }
  EXPECT_DOUBLE_EQ(answer.asked().tokens, tokens);
  EXPECT_NEAR(law.loss(answer.same_loss.params, answer.same_loss.tokens), answer.asked().loss, 1e-6);
  EXPECT_GE(answer.compute_over_optimum(), 1 - 1e-9);
}

TEST(Digits, AreThoseThatCount) {
  EXPECT_EQ(with_digits(391.4, 2), "390");
  EXPECT_EQ(with_digits(0.035249, 3), "0.0352");
  EXPECT_EQ(with_digits(99.96, 3), "100");
  EXPECT_EQ(with_digits(6690, 3), "6690");
  EXPECT_EQ(with_digits(0, 3), "0");
}

TEST(AskedRuns, AreConfigsOrPresets) {
  try {
    asked_run("llama-9000b", {}, 1);
    FAIL() << "a model that is not there";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("preset"), std::string::npos) << error.what();
  }
  AskedRun llama = asked_run("llama3-8b", {}, 24);
  EXPECT_EQ(llama.parameters, 8030261248);
  EXPECT_EQ(llama.run.batch.seq, kUsualSeq);
  EXPECT_EQ(llama.run.batch.sequences % 24, 0);
  std::vector<std::string> longer{"batch.seq=8192"};
  EXPECT_EQ(asked_run("llama3-8b", longer, 1).run.batch.seq, 8192);
}

}  // namespace
}  // namespace sextant
