// Sums over regions, and the simulated schedule, against the simulator's walk op by op.
#include "search/search_bound.h"

#include <gtest/gtest.h>

#include "cost/machine_file.h"
#include "cost/planned_target.h"
#include "exec/sim/rank_walk.h"
#include "exec/sim/region_work.h"
#include "plan/predict.h"
#include "schedule/timing.h"
#include "search/search_price.h"

namespace sextant {
namespace {

struct Lowered {
  Machine machine;
  SoftwareProfile profile = own_profile();
  LoweredRun run;

  Lowered(int64_t pp, const std::string& schedule, int64_t chunks) {
    machine.device.peaks = {{"bf16", 2e12}, {"fp32", 2e11}};
    machine.device.units = 8, machine.device.clock_hz = 1e9;
    machine.device.memory_bytes_per_s = 1e11;
    machine.levels = {{.name = "node", .devices = 0, .link = {2e10, 2e-6}}};
    machine.attention["cudnn"] = {0.5, 0.5, 0.4, 0.4};
    machine.tables.imbalance = 1;
    RunConfig config;
    config.train.eval_every = 0;
    config.batch = {.sequences = 8, .microbatch = 1, .seq = 256};
    config.mesh.pp = pp;
    config.pipeline.schedule = *value_of_word<ScheduleKind>(schedule), config.pipeline.chunks = chunks;
    ModelSpec spec{.architecture = "llama",
                   .layers = 4,
                   .hidden = 128,
                   .heads = 4,
                   .kv_heads = 4,
                   .head_dim = 32,
                   .ffn = 384,
                   .vocab = 512,
                   .max_seq = 256};
    run = lower_run(config, spec, planned_target(profile));
  }

  SimResult simulated() const { return simulate_run(run, {machine, machine.efficiency(), profile}); }

  RegionWork work(int rank, RegionKind kind, int chunk = 0) const {
    Pricer pricer(machine, machine.efficiency(), profile);
    for (const Region& region : run.programs.train[static_cast<size_t>(rank)].regions)
      if (region.kind == kind && region.chunk == chunk)
        return region_work(run.programs.train[static_cast<size_t>(rank)], region, pricer);
    return {};
  }
};

TEST(RegionWork, OnOneDeviceTheStepIsTheSumOfItsRegions) {
  Lowered lowered(1, "1f1b", 1);
  double sum = 8 * (lowered.work(0, RegionKind::forward).compute + lowered.work(0, RegionKind::backward).compute) +
               lowered.work(0, RegionKind::update).compute;
  EXPECT_NEAR(lowered.simulated().seconds, sum, 1e-12 * sum);
}

TEST(UnitAlone, OnOneDeviceIsWhatARegionTakes) {
  Lowered lowered(1, "1f1b", 1);
  Pricer pricer(lowered.machine, lowered.machine.efficiency(), lowered.profile);
  RankWalk walk(lowered.run.programs.train[0], pricer, {});
  for (RegionKind kind : {RegionKind::forward, RegionKind::backward}) {
    Action action{.region = kind, .microbatch = 3};
    double seconds = lowered.work(0, kind).compute;
    EXPECT_NEAR(walk.alone({&action, 1}).seconds, seconds, 1e-8 * seconds);
  }
}

// Messages of a stage leave with its last op, and arrive when the transfer is over.
TEST(UnitAlone, TellsWhatArrivesWhen) {
  Lowered lowered(2, "1f1b", 1);
  Pricer pricer(lowered.machine, lowered.machine.efficiency(), lowered.profile);
  RankWalk walk(lowered.run.programs.train[0], pricer, {});
  Action forward{.region = RegionKind::forward, .microbatch = 3};
  UnitAlone alone = walk.alone({&forward, 1});
  ASSERT_EQ(alone.messages.size(), 1u);
  EXPECT_EQ(alone.messages[0].kind, Collective::send);
  RegionWork work = lowered.work(0, RegionKind::forward);
  EXPECT_NEAR(alone.messages[0].arrives - alone.seconds, work.arrives_after, 1e-8 * alone.seconds);
}

// With nothing but stages, all that the simulator adds to the simulated schedule is the update.
void expect_as_on_paper(const Lowered& lowered) {
  const PipelineSchedule& schedule = lowered.run.shape.pipeline;
  const PipelineShape& shape = schedule.shape;
  Durations durations = uniform_durations(shape);
  double update = 0, message = 1;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    for (int chunk = 0; chunk < shape.chunks; ++chunk) {
      auto stage = static_cast<size_t>(stage_of(shape, schedule.placement, rank, chunk));
      RegionWork forward = lowered.work(rank, RegionKind::forward, chunk),
                 backward = lowered.work(rank, RegionKind::backward, chunk);
      durations.forward[stage] = forward.compute, durations.backward[stage] = backward.compute;
      durations.weight[stage] = lowered.work(rank, RegionKind::weight, chunk).compute;
      if (static_cast<int>(stage) + 1 < shape.stages()) message = std::min(message, forward.arrives_after);
      if (stage > 0) message = std::min(message, backward.arrives_after);
    }
    update = std::max(update, lowered.work(rank, RegionKind::update).compute);
  }
  durations.message = message;
  double paper = simulate_schedule(schedule, durations).makespan() + update, simulated = lowered.simulated().seconds;
  EXPECT_LE(paper, simulated * (1 + 1e-12));
  EXPECT_GE(paper, 0.95 * simulated);
}

TEST(RegionWork, APipelineRunsAsOnPaper) {
  expect_as_on_paper(Lowered(4, "1f1b", 1));
}
TEST(RegionWork, SoDoChunks) {
  expect_as_on_paper(Lowered(2, "interleaved", 2));
}
TEST(RegionWork, SoDoDeferredWeightGradients) {
  expect_as_on_paper(Lowered(2, "zb-h1", 1));
}

// Two blocks in four stages: the embedding and the head each have one to themselves. By the Programs of one and of two
// blocks the embedding takes less than no time here.
TEST(LayoutBounds, AStageWithoutBlocksTakesNoNegativeTime) {
  ModelSpec spec{.architecture = "mixtral",
                 .layers = 2,
                 .hidden = 64,
                 .heads = 4,
                 .kv_heads = 2,
                 .head_dim = 16,
                 .ffn = 96,
                 .vocab = 512,
                 .max_seq = 64};
  spec.experts = ExpertsSpec{.count = 4, .per_token = 2, .ffn = 96, .normalise = true};
  RunConfig run;
  run.train.eval_every = 0;
  run.batch = {.sequences = 8, .microbatch = 4, .seq = 64};
  const Machine machine = load_machine("h100-sxm");
  const SoftwareProfile profile = own_profile();
  LayoutBounds bounds({run, spec, machine, profile});
  LayoutChoice choice{.schedule = ScheduleKind::interleaved, .chunks = 2, .microbatch = 4};
  choice.mesh.pp = 2;
  const Candidate price = price_layout(with_choice(run, choice), {spec, machine, profile});
  const LeastCost least = bounds.bound(choice, Closeness::tight);
  EXPECT_GT(least.seconds, 0.3 * price.seconds);
  EXPECT_LE(least.seconds, price.seconds);
}

}  // namespace
}  // namespace sextant
