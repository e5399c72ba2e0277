#include "plan/step_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "config/load.h"
#include "config/resolve.h"
#include "cost/planned_target.h"
#include "run/programs.h"

namespace sextant {
namespace {

constexpr size_t kEveryOp = std::numeric_limits<size_t>::max();

LoweredRun lowered_with(std::vector<std::string> keys) {
  keys.insert(keys.begin(), {"model.preset=\"gpt2\"", "model.layers=4", "model.hidden=64", "model.heads=4",
                             "batch.seq=64", "batch.microbatch=1"});
  RunConfig run = load_config("", keys);
  return lower_run(run, resolve_model(run), planned_target(own_profile()));
}

int64_t most_of(const std::vector<MemoryMoment>& moments, int64_t MemoryParts::*part) {
  int64_t most = 0;
  for (const MemoryMoment& moment : moments) most = std::max(most, moment.parts.*part);
  return most;
}

// One microbatch on one rank: the order of the Program is the order of time.
TEST(StepMemory, OfOneMicrobatchIsTheProgramsOwnOrder) {
  LoweredRun run = lowered_with({"batch.sequences=1"});
  const Program& program = run.programs.train.front();
  std::vector<MemoryMoment> by_schedule = step_moments(program, kEveryOp), by_program = memory_moments(program);
  ASSERT_EQ(by_schedule.size(), by_program.size());
  // Scalars, 256 bytes each, are rounded to regions; the smallest activation has twice as many bytes as all of them.
  constexpr int64_t kScalars = 4096;
  for (size_t i = 0; i < by_program.size(); ++i) {
    EXPECT_EQ(by_schedule[i].path, by_program[i].path) << i;
    int64_t more = by_schedule[i].parts.total() - by_program[i].parts.total();
    EXPECT_LT(std::abs(more), kScalars) << by_program[i].path;
  }
}

// 1F1B: stage s of p begins p - s microbatches before the first of them goes backward, and ends with none.
TEST(StepMemory, OfAPipelineGrowsWithMicrobatchesInFlight) {
  LoweredRun run = lowered_with({"batch.sequences=8", "mesh.pp=4"});
  for (size_t stage = 0; stage < 4; ++stage) {
    const Program& program = run.programs.train[stage];
    std::vector<MemoryMoment> moments = step_moments(program, kEveryOp), kept_room = memory_moments(program);
    int64_t saved = 0;  // by one microbatch, in slots
    for (const Buffer& buffer : program.buffers)
      if (buffer.slots == static_cast<int32_t>(4 - stage) && buffer.slots > 1) saved += buffer.bytes;
    if (stage < 3) {
      ASSERT_GT(saved, 0);
      // At the end of the first forward one microbatch is there, at its fullest all of them.
      auto second = std::find_if(moments.begin() + 1, moments.end(),
                                 [&](const MemoryMoment& m) { return m.path == moments.front().path; });
      ASSERT_NE(second, moments.end());
      int64_t after_one = std::prev(second)->parts.activations;
      int64_t most = most_of(moments, &MemoryParts::activations);
      EXPECT_GE(most - after_one, static_cast<int64_t>(3 - stage - 1) * saved) << stage;
    }
    EXPECT_LE(most_of(moments, &MemoryParts::activations), most_of(kept_room, &MemoryParts::activations)) << stage;
    for (const MemoryMoment& moment : moments) {
      EXPECT_LE(moment.parts.total(), program.arena_bytes) << stage << " " << moment.path;
      EXPECT_GE(std::min({moment.parts.activations, moment.parts.scratch, moment.parts.communication}), 0) << stage;
    }
    EXPECT_LT(moments.back().parts.activations, std::max<int64_t>(saved, 4096)) << "what the last backward let go";
  }
}

// Values that only the last microbatch makes (ZeRO's pieces of summed gradients) reuse the memory of activations, and
// messages on the comm lane share one scratch: at no moment is there more than the arena has.
TEST(StepMemory, NeverHoldsMoreThanTheArena) {
  for (const std::vector<std::string>& keys : std::vector<std::vector<std::string>>{
           {"mesh.pp=2", "mesh.dp=2", "mesh.zero=1", "batch.sequences=16"},
           {"mesh.pp=2", "mesh.dp=2", "mesh.tp=2", "mesh.zero=1", "batch.sequences=16"},
           {"mesh.dp=2", "mesh.zero=1", "batch.sequences=16"},
           {"mesh.dp=2", "mesh.zero=2", "batch.sequences=16"},
           {"mesh.dp=2", "mesh.zero=3", "batch.sequences=16"},
           {"mesh.pp=2", "mesh.dp=2", "pipeline.schedule=gpipe", "mesh.zero=1", "batch.sequences=16"},
           {"mesh.pp=2", "mesh.dp=2", "pipeline.schedule=gpipe", "mesh.zero=3", "batch.sequences=16"},
           {"mesh.pp=2", "mesh.dp=2", "mesh.tp=2", "mesh.zero=3", "batch.sequences=16"},
           {"mesh.pp=2", "mesh.dp=2", "pipeline.schedule=zbv", "pipeline.chunks=2", "mesh.zero=3",
            "batch.sequences=16"},
           {"mesh.pp=2", "mesh.dp=2", "pipeline.schedule=dualpipev", "pipeline.chunks=2", "mesh.zero=2",
            "batch.sequences=16"},
           {"mesh.dp=2", "pipeline.schedule=combined-1f1b", "mesh.zero=3", "batch.sequences=16"},
           {"mesh.pp=2", "mesh.dp=2", "pipeline.schedule=interleaved", "pipeline.chunks=2", "mesh.zero=2",
            "batch.sequences=16"}}) {
    LoweredRun run = lowered_with(keys);
    for (const Program& program : run.programs.train) {
      const MemoryMoment* most = nullptr;
      std::vector<MemoryMoment> all = step_moments(program, kEveryOp);
      for (const MemoryMoment& moment : all) {
        EXPECT_LE(moment.parts.total(), program.arena_bytes) << keys[0] << keys[1] << " " << moment.path;
        if (!most || moment.parts.total() > most->parts.total()) most = &moment;
      }
      MemoryMoment fullest = fullest_moment(program);
      EXPECT_EQ(fullest.path, most->path);
      EXPECT_EQ(fullest.parts.total(), most->parts.total());
      // Gaps between buffers are all that is left over.
      EXPECT_GT(most->parts.total(), program.arena_bytes * 8 / 10) << keys[0] << keys[1];
    }
  }
}

TEST(StepMemory, ThinningKeepsTheFullestMoment) {
  LoweredRun run = lowered_with({"batch.sequences=8", "mesh.pp=2"});
  const Program& program = run.programs.train.front();
  std::vector<MemoryMoment> all = step_moments(program, kEveryOp), few = step_moments(program, 20);
  EXPECT_EQ(few.size(), 20u);
  auto total = [](const MemoryMoment& moment) { return moment.parts.total(); };
  EXPECT_EQ(std::ranges::max(few, {}, total).parts.total(), std::ranges::max(all, {}, total).parts.total());
}

}  // namespace
}  // namespace sextant
