// How long a checkpoint holds a run up: by the bytes that a rank writes, which checkpoint.dtype adds to.
#include <gtest/gtest.h>

#include "config/load.h"
#include "config/resolve.h"
#include "cost/machine_file.h"
#include "cost/planned_target.h"
#include "plan/run_plan.h"

namespace sextant {
namespace {

RunPlan planned_with(std::string_view dtype, std::string_view more = "") {
  RunConfig run = parse_config(
      "[model]\narchitecture = \"llama\"\nlayers = 2\nhidden = 128\nheads = 4\nvocab = 512\n[batch]\nseq = 128\n"
      "[checkpoint]\ndtype = \"" +
          std::string(dtype) + "\"\n" + std::string(more),
      "run.toml");
  Machine machine = load_machine("dgx-h100-pod");
  machine.checkpoint_bytes_per_s = 1e6;
  const SoftwareProfile profile = own_profile();
  LoweredRun lowered = lower_run(run, resolve_model(run), planned_target(profile));
  return make_plan({.run = run, .lowered = lowered, .machine = &machine, .profile = &profile, .token_budget = 1e9});
}

TEST(CheckpointBytes, WeightsOfSixteenBitsStandBesideThoseInFull) {
  RunPlan f32 = planned_with("f32"), bf16 = planned_with("bf16"), f16 = planned_with("f16");
  ASSERT_TRUE(f32.economics && bf16.economics && f16.economics);
  // AdamW: a weight in f32 and two moments.
  EXPECT_DOUBLE_EQ(f32.economics->run.checkpoint_seconds, 12e-6 * static_cast<double>(f32.parameters));
  EXPECT_DOUBLE_EQ(bf16.economics->run.checkpoint_seconds, 14e-6 * static_cast<double>(f32.parameters));
  EXPECT_DOUBLE_EQ(f16.economics->run.checkpoint_seconds, 14e-6 * static_cast<double>(f32.parameters));
  EXPECT_EQ(bf16.peak_bytes, f32.peak_bytes);
  EXPECT_EQ(bf16.snapshot, f32.snapshot);
}

TEST(CheckpointBytes, LocalCheckpointsAreTwoCopiesAndTwoOfAnotherRanks) {
  EXPECT_EQ(planned_with("f32").local_copies, 0);
  RunPlan alone = planned_with("f32", "local_every = 5\n"),
          pair = planned_with("f32", "local_every = 5\n[mesh]\ndp = 2\n"),
          single = planned_with("f32", "local_every = 5\nreplication = false\n[mesh]\ndp = 2\n");
  EXPECT_EQ(alone.local_copies, 2 * 12 * alone.parameters);
  EXPECT_EQ(alone.local_copies_held, 0);
  EXPECT_EQ(pair.local_copies, 2 * 12 * pair.parameters);
  EXPECT_EQ(pair.local_copies_held, pair.local_copies);
  EXPECT_EQ(single.local_copies_held, 0);
}

}  // namespace
}  // namespace sextant
