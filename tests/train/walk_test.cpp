// One order for all: the steps that the CPU executor takes, those that the simulator takes and those that ir/walk.h
// lists are the same, on every kind of schedule and with every kind of message.
#include "ir/walk.h"

#include <gtest/gtest.h>

#include "cost/machine_file.h"
#include "exec/sim/rank_walk.h"
#include "mesh_cases.h"
#include "run/programs.h"
#include "run/resolve_spec.h"
#include "scratch_run.h"
#include "targets/cpu/cpu_target.h"
#include "walk_steps.h"

namespace sextant {
namespace {

std::vector<Steps> simulated(const std::vector<Program>& programs) {
  Machine machine = load_machine("h200");
  SoftwareProfile profile = own_profile();
  Pricer pricer(machine, machine.tables, profile);
  std::vector<RankWalk> ranks;
  std::vector<Steps> steps(programs.size());
  ranks.reserve(programs.size());
  for (size_t i = 0; i < programs.size(); ++i) {
    ranks.emplace_back(programs[i], pricer, SimOptions{});
    ranks.back().record_steps(&steps[i]);
  }
  StageMessages messages;
  for (bool moved = true; moved;) {
    moved = false;
    for (RankWalk& rank : ranks)
      if (!rank.done()) moved = rank.advance(messages) || moved;
  }
  return steps;
}

class OneWalk : public testing::TestWithParam<MeshCase> {};
INSTANTIATE_TEST_SUITE_P(Meshes, OneWalk, testing::ValuesIn(meshes()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(OneWalk, ExecutorAndSimulatorTakeTheSameSteps) {
  ScratchRun scratch("walk");
  std::vector<std::string> settings = common_settings();
  for (const std::string& setting : GetParam().settings) settings.push_back(setting);
  settings.push_back("batch.seq=16");
  RunConfig run = scratch.config("tiny-llama.toml", settings);
  LoweredRun lowered = lower_run(run, resolve_spec(run), cpu_target(1));
  std::vector<Steps> by_sim = simulated(lowered.programs.train), by_cpu = executed_steps(lowered, cpu_ranks());
  for (int rank = 0; rank < lowered.shape.mesh.world_size(); ++rank) {
    auto stage = static_cast<size_t>(stage_rank_of(lowered.shape.mesh, rank));
    Steps steps = listed_steps(lowered.programs.train[stage]);
    ASSERT_GT(steps.size(), 40u);  // a stage that has the embedding alone takes 46
    EXPECT_TRUE(by_cpu[static_cast<size_t>(rank)] == steps) << "rank " << rank;
    EXPECT_TRUE(by_sim[stage] == steps) << "stage " << stage;
  }
}

// An action that the Program has no region for runs nothing, and nothing is looked up past the end.
TEST(Walk, AnActionWithoutRegionHasNoSteps) {
  Program program{.name = "empty"};
  program.schedule = {{RegionKind::weight, 0, 0}};
  EXPECT_FALSE(Walk(program).region_of(program.schedule[0]).has_value());
  EXPECT_TRUE(Walk(program).steps(program.schedule[0]).empty());
  Machine machine = load_machine("h200");
  SoftwareProfile profile = own_profile();
  Pricer pricer(machine, machine.tables, profile);
  RankWalk rank(program, pricer, {});
  StageMessages messages;
  EXPECT_TRUE(rank.advance(messages));
  EXPECT_TRUE(rank.done());
}

}  // namespace
}  // namespace sextant
