// A plan that does not fit has no times: not in the record, so in nothing that is written from it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "config/load.h"
#include "config/resolve.h"
#include "cost/machine_file.h"
#include "cost/planned_target.h"
#include "plan/run_plan.h"
#include "plan/serving.h"

namespace sextant {
namespace {

class OnSmallDevice : public testing::Test {
 protected:
  OnSmallDevice() { machine_.device.memory_bytes = machine_.context_bytes + 1e6; }

  const RunConfig run_ = parse_config(
      "[model]\narchitecture = \"llama\"\nlayers = 2\nhidden = 128\nheads = 4\nvocab = 512\n[batch]\nseq = 128\n",
      "run.toml");
  const ModelSpec spec_ = resolve_model(run_);
  Machine machine_ = load_machine("h100-sxm");
  const SoftwareProfile profile_ = own_profile();
};

TEST_F(OnSmallDevice, ThePlanHasNoTimes) {
  LoweredRun lowered = lower_run(run_, spec_, planned_target(profile_));
  RunPlan plan =
      make_plan({.run = run_, .lowered = lowered, .machine = &machine_, .profile = &profile_, .token_budget = 1e9});
  EXPECT_FALSE(plan.fits());
  EXPECT_FALSE(plan.step);
  EXPECT_FALSE(plan.economics);
  std::string text = plan_text(plan);
  EXPECT_NE(text.find("IT DOES NOT FIT"), std::string::npos) << text;
  EXPECT_NE(text.find("h100-sxm"), std::string::npos) << text;
  EXPECT_EQ(text.find("tokens/s"), std::string::npos) << text;
  nlohmann::json json = nlohmann::json::parse(plan_json(plan));
  EXPECT_EQ(json["memory"]["fits"], false);
  EXPECT_TRUE(json["step"].is_null());
  EXPECT_TRUE(json["run"].is_null());
}

TEST_F(OnSmallDevice, ServingHasNoTimes) {
  Serving serving =
      plan_serving({.spec = spec_, .machine = machine_, .profile = profile_, .prompt = 16, .context = 64});
  EXPECT_FALSE(serving.fits());
  EXPECT_TRUE(serving.batches.empty());
  EXPECT_EQ(nlohmann::json::parse(serving_json(serving))["fits"], false);
}

TEST_F(OnSmallDevice, ServingOnACpuIsRefused) {
  machine_.device.kind = DeviceKind::cpu;
  EXPECT_THROW(plan_serving({.spec = spec_, .machine = machine_, .profile = profile_, .prompt = 16, .context = 64}),
               UserError);
}

}  // namespace
}  // namespace sextant
