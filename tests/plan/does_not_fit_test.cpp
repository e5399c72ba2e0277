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

// The device has room, and the host's memory or its disks do not.
TEST_F(OnSmallDevice, WhatIsOffloadedHasToFitToo) {
  machine_.device.memory_bytes = 8e10;
  machine_.host.nvme_bytes_per_s = 1e9;
  RunConfig run = run_;
  run.offload.optimizer = true;
  auto planned = [&] {
    LoweredRun lowered = lower_run(run, spec_, planned_target(profile_));
    return make_plan({.run = run, .lowered = lowered, .machine = &machine_, .profile = &profile_});
  };
  auto expect_short = [&](const std::string& of, const char* room) {
    const RunPlan plan = planned();
    EXPECT_FALSE(plan.fits());
    EXPECT_TRUE(plan.fits_device());
    EXPECT_FALSE(plan.step);
    EXPECT_NE(plan_text(plan).find("it does not fit: the " + of), std::string::npos) << plan_text(plan);
    nlohmann::json json = nlohmann::json::parse(plan_json(plan));
    EXPECT_EQ(json["memory"]["fits"], false);
    EXPECT_GT(json["memory"][room], 0);
  };
  const double on_host = static_cast<double>(planned().host_bytes);
  EXPECT_TRUE(planned().fits());
  machine_.host.memory_bytes = 0.9 * on_host;
  expect_short("host has", "host_room_bytes");
  machine_.host.memory_bytes = 2 * on_host;
  run.offload.to = OffloadTarget::nvme, run.offload.path = "disk";
  const RunPlan in_file = planned();
  EXPECT_TRUE(in_file.fits());
  machine_.host.nvme_bytes = 0.9 * static_cast<double>(in_file.nvme_bytes);
  expect_short("disks have", "nvme_room_bytes");
  machine_.host.nvme_bytes = static_cast<double>(in_file.nvme_bytes);
  EXPECT_TRUE(planned().fits());
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
