// Memory on meshes: what the plan says is what every rank allocates; sharding and schedules save what they should.
#include <gtest/gtest.h>

#include "comm/ranks.h"
#include "mesh_cases.h"
#include "passes/memory.h"
#include "plan/run_plan.h"
#include "run/resolve_spec.h"
#include "run/run_target.h"
#include "scratch_run.h"
#include "targets/cpu/cpu_target.h"
#include "train/data/dataset.h"
#include "train/trainer.h"

namespace sextant {
namespace {

RunConfig config_of(const ScratchRun& scratch, const char* file, const std::vector<std::string>& settings) {
  std::vector<std::string> all = common_settings();
  all.insert(all.end(), settings.begin(), settings.end());
  return scratch.config(file, all);
}

RunPrograms programs_of(const ScratchRun& scratch, const char* file, const std::vector<std::string>& settings) {
  RunConfig run = config_of(scratch, file, settings);
  return build_programs(run, run_shape(run, resolve_spec(run)), cpu_target(1));
}

TEST(MeshMemory, PlanTellsTheBytesOfEveryRank) {
  ScratchRun scratch("bytes");
  auto say = [](std::string_view) {};
  for (const MeshCase& mesh : meshes()) {
    RunConfig run = config_of(scratch, "tiny-llama.toml", mesh.settings);
    ModelSpec spec = resolve_spec(run);
    RunShape shape = run_shape(run, spec);
    ThreadTeam team(1);
    Dataset dataset = open_dataset(run, spec, team, say);
    int ranks = shape.mesh.world_size();
    Target target = cpu_target(threads_per_rank(run, ranks));
    LoweredRun lowered = lower_run(run, spec, target);
    RunPlan plan = make_plan({.run = run, .lowered = lowered});
    const RunPrograms& programs = lowered.programs;
    std::vector<int64_t> allocated(static_cast<size_t>(ranks));
    run_ranks({}, {ranks, std::chrono::seconds(60)}, [&](const RankContext& context) {
      std::unique_ptr<Executor> executor = make_cpu_executor(threads_per_rank(run, ranks), context);
      HostGroup group = context.transport ? HostGroup(*context.transport, 2) : HostGroup();
      Trainer trainer({run, programs, dataset, *executor, group});
      allocated[static_cast<size_t>(context.rank)] = trainer.arena_bytes();
    });
    for (int rank = 0; rank < ranks; ++rank)
      EXPECT_EQ(allocated[static_cast<size_t>(rank)],
                plan.classes[static_cast<size_t>(stage_rank_of(shape.mesh, rank))].memory.total())
          << mesh.name << " rank " << rank;
  }
}

TEST(MeshMemory, ShardingSavesState) {
  ScratchRun scratch("zero");
  for (const char* file : {"tiny-llama.toml", "tiny-gpt2.toml"}) {
    int64_t one = programs_of(scratch, file, {}).train[0].persistent_bytes;
    EXPECT_LT(programs_of(scratch, file, {"mesh.dp=8", "mesh.zero=3"}).train[0].persistent_bytes, one / 6) << file;
    EXPECT_LT(programs_of(scratch, file, {"mesh.dp=8", "mesh.zero=2"}).train[0].persistent_bytes, one / 2) << file;
    EXPECT_LT(programs_of(scratch, file, {"mesh.dp=8", "mesh.zero=1"}).train[0].persistent_bytes, one * 6 / 10) << file;
    EXPECT_LT(programs_of(scratch, file, {"mesh.tp=4"}).train[0].persistent_bytes, one * 3 / 10) << file;
  }
}

// With 1F1B the saved activations of a stage are those of the microbatches in flight, however many there are in a step.
TEST(MeshMemory, MicrobatchesInFlightLimitTheActivations) {
  ScratchRun scratch("flight");
  auto saved = [&](const char* schedule, int sequences) {
    std::vector<int64_t> bytes;
    for (const Program& program :
         programs_of(scratch, "tiny-llama.toml",
                     {"mesh.pp=4", fmt::format("pipeline.schedule={}", schedule),
                      fmt::format("batch.sequences={}", sequences), "pipeline.layers='1,1,1,1'"})
             .train)
      bytes.push_back(memory_use(program).saved.n);
    return bytes;
  };
  std::vector<int64_t> few = saved("1f1b", 8), many = saved("1f1b", 16), all = saved("gpipe", 16);
  EXPECT_EQ(few, many);
  // Two stages that hold the same: as much per microbatch, and 3 and 2 of them in flight.
  EXPECT_EQ(few[1] * 2, few[2] * 3);
  EXPECT_EQ(all[1] * 3, few[1] * 16);
}

}  // namespace
}  // namespace sextant
