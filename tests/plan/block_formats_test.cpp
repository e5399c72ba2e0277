// Formats that nothing runs yet (mxfp8, nvfp4): planned on machines that have them, by the prices of the software that
// does run them, and refused elsewhere.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "config/load.h"
#include "config/resolve.h"
#include "cost/machine_file.h"
#include "cost/planned_target.h"
#include "cost/software_profile_file.h"
#include "ops/fp8_recipe.h"
#include "plan/machine_target.h"
#include "plan/run_plan.h"
#include "run/programs.h"

namespace sextant {
namespace {

constexpr const char* kText =
    "[model]\narchitecture = \"llama\"\nlayers = 4\nhidden = 8192\nheads = 64\nffn = 28672\nvocab = 512\n"
    "[batch]\nsequences = 8\nmicrobatch = 2\nseq = 4096\n[mesh]\ntp = 2\n[train]\nprecision = \"{}\"\nfp8_skip = {}\n";

RunConfig run_in(std::string_view precision, int64_t skip = 0) {
  return parse_config(fmt::format(fmt::runtime(kText), precision, skip), "run.toml");
}

LoweredRun lowered_for(const RunConfig& run, const Machine& machine, const SoftwareProfile& profile) {
  Target target = machine_target({.run = run, .ranks = 2, .machine = machine, .profile = profile});
  return lower_run(run, resolve_model(run), target, Checks::none);
}

RunPlan planned(const RunConfig& run, const Machine& machine, const SoftwareProfile& profile = own_profile()) {
  LoweredRun lowered = lowered_for(run, machine, profile);
  return make_plan({.run = run, .lowered = lowered, .machine = &machine, .profile = &profile});
}

std::string refusal(const RunConfig& run, const std::string& machine) {
  try {
    planned(run, load_machine(machine));
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

class BlockFormats : public testing::TestWithParam<const char*> {
 protected:
  const BlockFormat& format() const { return *find_block_format(*value_of_word<Precision>(GetParam())); }
  const Machine machine_ = load_machine("b200");
};

// Published runs in these formats are priced by `products` of their software: ours takes as long as such software would
// if it were like ours in all else.
TEST_P(BlockFormats, TakeTheTimeOfTheirProducts) {
  SoftwareProfile theirs = own_profile();
  theirs.products = *products_named(GetParam());
  RunPlan plan = planned(run_in(GetParam()), machine_), bf16 = planned(run_in("bf16"), machine_);
  EXPECT_DOUBLE_EQ(plan.step->seconds, planned(run_in("bf16"), machine_, theirs).step->seconds);
  EXPECT_LT(plan.step->seconds, bf16.step->seconds);
  double skipped = planned(run_in(GetParam(), 1), machine_).step->seconds;
  EXPECT_GT(skipped, plan.step->seconds);
  EXPECT_LT(skipped, bf16.step->seconds);
}

TEST_P(BlockFormats, SayWhatIsKnown) {
  RunPlan plan = planned(run_in(GetParam()), machine_), bf16 = planned(run_in("bf16"), machine_);
  EXPECT_EQ(plan.peak_bytes, bf16.peak_bytes);
  EXPECT_EQ(plan.memory_basis, MemoryBasis::wide);
  std::string text = plan_text(plan);
  EXPECT_NE(text.find(fmt::format("precision   {}", format().text())), std::string::npos) << text;
  EXPECT_NE(text.find(fmt::format("nothing here runs {} yet", GetParam())), std::string::npos) << text;
  nlohmann::json json = nlohmann::json::parse(plan_json(plan));
  EXPECT_EQ(json["memory"]["known"], "wide");
  EXPECT_EQ(json["format"]["name"], GetParam());
  EXPECT_EQ(json["format"]["bytes_per_element"], format().bytes_per_element());
  EXPECT_EQ(plan_text(bf16).find("precision   "), std::string::npos);
}

// A linear and both of its gradients, in two blocks of four.
TEST_P(BlockFormats, AreNamedInTheProgram) {
  RunConfig run = run_in(GetParam(), 1);
  LoweredRun lowered = lowered_for(run, machine_, own_profile());
  int64_t priced = 0, skipped = 0;
  for (const Region& region : lowered.programs.train.front().regions)
    for (const Op& op : region.ops) {
      priced += op.attrs.text_or(kPricedIn, "") == GetParam();
      skipped += op.attrs.text_or("kept_wide", "") == "train.fp8_skip";
    }
  EXPECT_GT(priced, 0);
  EXPECT_EQ(priced, skipped);
  EXPECT_EQ(priced % 3, 0);
}

TEST_P(BlockFormats, AreRefusedWithoutTheirUnits) {
  for (const char* machine : {"h100-sxm", "a100-80-sxm"}) {
    std::string said = refusal(run_in(GetParam()), machine);
    for (const std::string& word :
         {std::string("train.precision"), format().text(), std::string("has no units for it")})
      EXPECT_NE(said.find(word), std::string::npos) << said;
  }
}

INSTANTIATE_TEST_SUITE_P(Plan, BlockFormats, testing::Values("mxfp8", "nvfp4"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace sextant
