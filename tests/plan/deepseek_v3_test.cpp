// DeepSeek-V3 on the layout of its report (arXiv 2412.19437): 2,048 devices of 80 GB, PP16, EP64, ZeRO-1, DualPipe.
#include <gtest/gtest.h>

#include <filesystem>

#include "checkout.h"
#include "config/load.h"
#include "config/resolve.h"
#include "cost/machine_file.h"
#include "cost/planned_target.h"
#include "passes/memory.h"
#include "run/fit.h"
#include "run/programs.h"
#include "schedule/check.h"

namespace sextant {
namespace {

class DeepSeekV3 : public testing::Test {
 protected:
  static RunConfig config(const std::vector<std::string>& overrides) {
    return load_config(std::filesystem::path(checkout::kSources) / "configs/plan/deepseek-v3.toml", overrides);
  }
  const Machine machine_ = load_machine("h800");
};

TEST_F(DeepSeekV3, FitsOnTheLayoutOfItsReport) {
  RunConfig run = config({});
  EXPECT_EQ(run.mesh.pp, 16);
  EXPECT_EQ(run.mesh.ep, 64);
  EXPECT_EQ(run.mesh.zero, 1);
  EXPECT_EQ(run.pipeline.schedule, ScheduleKind::dualpipe);
  EXPECT_EQ(run.model.given<&ModelSpec::mtp_depths>(), 1);
  LoweredRun lowered = lower_run(run, resolve_model(run), planned_target(own_profile()), Checks::none);
  double outside_of_arena = machine_.context_bytes;
  EXPECT_LE(static_cast<double>(largest_arena(lowered.programs).n) + outside_of_arena, machine_.device.memory_bytes);

  // A repeated step takes the memory of two rounds and the maps of the others, also where multi-token prediction is: of
  // each of the 64 · 589 rows a round has of a microbatch and layer, its slot and its expert, and one byte more in ten.
  const RunPrograms::Repeat &few = lowered.programs.repeat.front(), &all = lowered.programs.repeat.back();
  EXPECT_EQ(few.rounds, 2);
  EXPECT_EQ(all.rounds, 28);
  const double maps = 26.0 * 64 * 589 * 8;
  for (size_t rank = 0; rank < all.programs.size(); ++rank) {
    double layers = 2 * 61.0 / 16 + 1, microbatches = 17;
    EXPECT_LE(static_cast<double>(all.programs[rank].arena_bytes - few.programs[rank].arena_bytes),
              1.1 * layers * microbatches * maps)
        << rank;
  }
}

// Bytes that gradients of experts and of latent heads keep until their W, by hand: for a token the gradients of gate
// and up and the activations of eight experts, and the gradients of queries, keys and values.
TEST_F(DeepSeekV3, DeferredGradientsKeepRowsOfExpertsAndHeads) {
  RunConfig run = config({"mesh.expert_capacity=0", "mesh.ep=1", "mesh.dp=1", "mesh.pp=2", "batch.sequences=4"});
  ModelSpec spec = resolve_model(run);
  spec.layers = 2, spec.mtp_depths = 0;
  spec.experts->count = 16, spec.experts->dense_first = 0;
  auto saved = [&](const std::string& deferred) {
    run.pipeline.deferred_gradients = *value_of_word<DeferredGradients>(deferred);
    LoweredRun lowered = lower_run(run, spec, planned_target(own_profile()), Checks::none);
    return static_cast<double>(memory_use(lowered.programs.train.front()).saved.n);
  };
  const PipelineSchedule schedule = run_shape(run, spec).pipeline;
  int waiting = in_flight(schedule, 0, 0).backward_to_weight + in_flight(schedule, 0, 1).backward_to_weight;
  const double tokens = 4096, kept = tokens * 2 * (8 * (2 * 2048 + 2048) + 128 * (192 + 128 + 128));
  double more = saved("all") - saved("cheap");
  EXPECT_GE(more, waiting * kept);
  EXPECT_LE(more, 1.1 * waiting * kept);
}

}  // namespace
}  // namespace sextant
