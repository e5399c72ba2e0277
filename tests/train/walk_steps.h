// The steps that ranks take in one training step: those that ir/walk.h lists, and those that an executor took.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <vector>

#include "comm/ranks.h"
#include "exec/executor.h"
#include "ir/lane.h"
#include "ir/walk.h"
#include "run/programs.h"
#include "train/train.h"

namespace sextant {

using Steps = std::vector<WalkStep>;

inline Steps listed_steps(const Program& program) {
  Walk walk(program);
  Steps steps;
  for_each_unit(program.schedule, [&](std::span<const Action> unit) {
    std::span<const WalkStep> of = walk.steps(unit);
    steps.insert(steps.end(), of.begin(), of.end());
  });
  return steps;
}

// By rank.
inline std::vector<Steps> executed_steps(const LoweredRun& lowered, const MakeExecutor& executors) {
  int ranks = lowered.shape.mesh.world_size();
  std::vector<Steps> steps(static_cast<size_t>(ranks));
  run_ranks({}, {ranks, std::chrono::seconds(60)}, [&](const RankContext& context) {
    std::unique_ptr<Executor> executor = executors(context, 1);
    const Program& program =
        lowered.programs.train[static_cast<size_t>(stage_rank_of(lowered.shape.mesh, context.rank))];
    std::unique_ptr<Arena> arena = executor->allocate(program.arena_bytes, program.host_arena.all);
    std::unique_ptr<Bound> bound = executor->bind(program, *arena);
    bound->record_steps(&steps[static_cast<size_t>(context.rank)]);
    run_schedule(*bound);
  });
  return steps;
}

}  // namespace sextant
