// Pairs, a forward beside the backward of another microbatch: they change when ops run and where messages travel, and
// no bit of a result. What each needs beside the other, the plan holds.
#include <gtest/gtest.h>

#include <map>

#include "base/files.h"
#include "ir/lane.h"
#include "ir/walk.h"
#include "mesh_cases.h"
#include "passes/memory.h"
#include "run/programs.h"
#include "run/resolve_spec.h"
#include "scratch_run.h"
#include "targets/cpu/cpu_target.h"

namespace sextant {
namespace {

using PairSettings = std::vector<std::string>;

PairSettings joined(PairSettings settings, const PairSettings& more) {
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

std::vector<Program> pair_programs(const ScratchRun& scratch, const PairSettings& settings) {
  RunConfig run = scratch.config("tiny-llama.toml", joined(common_settings(), settings));
  return lower_run(run, resolve_spec(run), cpu_target(1)).programs.train;
}

TEST(Pairs, ResultsAreThoseOfOneAfterTheOtherBitForBit) {
  ScratchRun scratch("pairs");
  struct Twins {
    const char* name;
    PairSettings mesh, apart, paired;
  };
  const PairSettings fold{"mesh.pp=2", "pipeline.chunks=2"};
  const PairSettings short_run{"train.steps=6", "train.eval_every=0", "optimizer.warmup=0"};
  for (const Twins& twins :
       std::vector<Twins>{{"one", {}, {"pipeline.schedule=1f1b"}, {"pipeline.schedule=combined-1f1b"}},
                          {"tp2", {"mesh.tp=2"}, {"pipeline.schedule=1f1b"}, {"pipeline.schedule=combined-1f1b"}},
                          {"fold", fold, {"pipeline.schedule=zbv"}, {"pipeline.schedule=dualpipev"}},
                          {"fold_tp2_full",
                           joined(fold, {"mesh.tp=2", "mesh.sequence_parallel=true", "train.recompute=full"}),
                           {"pipeline.schedule=zbv"},
                           {"pipeline.schedule=dualpipev"}}})
    for (const char* file : {"tiny-llama.toml", "tiny-moe.toml"}) {
      std::string apart = fmt::format("{}-apart-{}", twins.name, file), paired = fmt::format("{}-{}", twins.name, file);
      PairSettings common = joined(joined(common_settings(), short_run), twins.mesh);
      scratch.run(apart, joined(common, twins.apart), file);
      scratch.run(paired, joined(common, twins.paired), file);
      EXPECT_EQ(scratch.losses(paired), scratch.losses(apart)) << paired;
      EXPECT_EQ(scratch.metric(paired, "grad_norm"), scratch.metric(apart, "grad_norm")) << paired;
      EXPECT_EQ(read_file(scratch.root() / paired / "step-000006/model.safetensors"),
                read_file(scratch.root() / apart / "step-000006/model.safetensors"))
          << paired;
    }
}

// In every pair, messages of tensor parallelism leave, the other action computes, and then they are waited for. Each
// action keeps its own order.
TEST(Pairs, MessagesOfOneTravelWhileTheOtherComputes) {
  ScratchRun scratch("turns");
  const std::vector<Program> programs =
      pair_programs(scratch, {"mesh.pp=2", "mesh.tp=2", "pipeline.chunks=2", "pipeline.schedule=dualpipev"});
  for (const Program& program : programs) {
    Walk walk(program);
    int pairs = 0;
    for_each_unit(program.schedule, [&](std::span<const Action> unit) {
      if (!is_pair(unit)) return;
      ++pairs;
      struct UnderWay {
        int32_t part;
        int computed_beside;  // ops that the other action has started since
      };
      std::map<int32_t, UnderWay> under_way;  // by op
      int messages = 0, hidden = 0;
      std::map<int32_t, int32_t> last_op;  // by part
      for (const WalkStep& step : walk.steps(unit)) {
        if (step.kind == WalkStep::Kind::wait) {
          auto at = under_way.find(step.op);
          if (at == under_way.end()) continue;
          hidden += at->second.computed_beside > 0;
          under_way.erase(at);
        }
        if (step.kind != WalkStep::Kind::start) continue;
        auto [before, fresh] = last_op.emplace(step.part, step.op);
        EXPECT_TRUE(fresh || before->second < step.op);
        before->second = step.op;
        if (on_comm_lane(walk.op(step.op))) {
          under_way.emplace(step.op, UnderWay{step.part, 0});
          ++messages;
          continue;
        }
        for (auto& [op, message] : under_way) message.computed_beside += (step.part == 0) != (message.part == 0);
      }
      EXPECT_GE(messages, 4);  // two of a layer forward, two backward
      EXPECT_GE(hidden, messages / 2) << messages;
      EXPECT_TRUE(under_way.empty());  // all have arrived when the pair ends
    });
    EXPECT_GE(pairs, 8);
  }
}

// On one stage two microbatches are alive, so all that is saved is there twice.
TEST(Pairs, TwoMicrobatchesAreSavedOnOneStage) {
  ScratchRun scratch("saved");
  MemoryUse apart = memory_use(pair_programs(scratch, {})[0]);
  MemoryUse paired = memory_use(pair_programs(scratch, {"pipeline.schedule=combined-1f1b"})[0]);
  EXPECT_EQ(paired.saved.n, 2 * apart.saved.n);
  EXPECT_EQ(paired.weights.n + paired.gradients.n + paired.optimizer.n,
            apart.weights.n + apart.gradients.n + apart.optimizer.n);
}

// Each of the two regions has working memory of its own: their working bytes add up where ops meet.
TEST(Pairs, WorkingMemoryIsThatOfBoth) {
  ScratchRun scratch("working");
  const PairSettings tp{"mesh.tp=2", "batch.seq=64"};
  Program apart = pair_programs(scratch, tp)[0];
  Program paired = pair_programs(scratch, joined(tp, {"pipeline.schedule=combined-1f1b"}))[0];
  EXPECT_GT(memory_use(paired).working.n, memory_use(apart).working.n);
}

}  // namespace
}  // namespace sextant
