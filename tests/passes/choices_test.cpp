// Choices of passes, read from their Programs: which values decay, are reduced together, recomputed or sharded, where
// stages are cut and which buffers share memory.
#include <gtest/gtest.h>

#include <set>

#include "exec/cpu/cpu_executor.h"
#include "models/model.h"
#include "ops/ops.h"
#include "passes/lower.h"
#include "passes/memory.h"
#include "passes/stages.h"
#include "targets/cpu/cpu_target.h"

namespace sextant {
namespace {

ModelSpec tiny(std::string architecture, int64_t layers = 4, int64_t vocab = 64) {
  return {.architecture = std::move(architecture),
          .layers = layers,
          .hidden = 32,
          .heads = 4,
          .kv_heads = 4,
          .head_dim = 8,
          .ffn = 64,
          .vocab = vocab,
          .max_seq = 16};
}

Program trained(const ModelSpec& spec, const Plan& plan, int dp = 1) {
  Mesh mesh{{{"pp", 1}, {"dp", dp}, {"cp", 1}, {"tp", 1}}};
  Use use{.batch = dp, .seq = 16, .parallel = {.zero = plan.zero}};
  LowerOptions options{.plan = plan, .train = Optimizer{.settings = {.weight_decay = 0.3}}};
  return lower(build_model(spec, use, mesh), cpu_target(1), options);
}

template <class Visit>
void for_each_op(const Program& program, const Visit& visit) {
  for (const Region& region : program.regions)
    for (const Op& op : region.ops) visit(op);
}

TEST(Choices, MatricesDecayAndVectorsDoNot) {
  for (const char* architecture : {"llama", "gpt2"}) {
    Program program = trained(tiny(architecture), {});
    int matrices = 0, vectors = 0;
    for_each_op(program, [&](const Op& op) {
      if (op.def != &ops::adamw) return;
      bool matrix = program[op.inputs[0]].shape.rank() >= 2;
      ++(matrix ? matrices : vectors);
      EXPECT_EQ(op.attrs.real("weight_decay"), matrix ? 0.3 : 0) << op.path;
    });
    EXPECT_GT(matrices, 0);
    EXPECT_GT(vectors, 0);
  }
}

// A bucket is closed by the gradient that fills it.
TEST(Choices, BucketsCloseWhenTheyAreFull) {
  for (int64_t bucket : {int64_t{8192}, int64_t{1} << 30}) {
    Program program = trained(tiny("llama"), {.overlap = true, .bucket = {bucket}}, 2);
    int buckets = 0, open = 0;
    for_each_op(program, [&](const Op& op) {
      if (op.def != &ops::all_reduce_bucket) return;
      int64_t bytes = 0;
      for (ValueId id : op.inputs) bytes += program[id].local_bytes().n;
      EXPECT_LT(bytes - program[op.inputs.back()].local_bytes().n, bucket);
      open += bytes < bucket ? 1 : 0;
      ++buckets;
    });
    EXPECT_LE(open, 1) << "only the last may be less than full";
    if (bucket == 8192)
      EXPECT_GT(buckets, 5);
    else
      EXPECT_EQ(buckets, 1);
  }
}

TEST(Choices, BlocksThatAreComputedAgain) {
  auto blocks = [](RecomputeMode mode) {
    std::set<int> again;
    for_each_op(trained(tiny("llama"), {.recompute = mode}), [&](const Op& op) {
      if (op.phase == Phase::recompute) again.insert(op.block);
    });
    return again;
  };
  EXPECT_EQ(blocks(RecomputeMode::none), std::set<int>{});
  EXPECT_EQ(blocks(RecomputeMode::alternate), (std::set<int>{0, 2}));
  EXPECT_EQ(blocks(RecomputeMode::full), (std::set<int>{0, 1, 2, 3}));
}

// Stage 1 shards the optimizer's state, 2 gradients too, 3 weights too.
TEST(Choices, WhatZeroShards) {
  for (int zero : {0, 1, 2, 3}) {
    Program program = trained(tiny("llama"), {.zero = zero, .microbatches = 2}, 2);
    auto share = [&](const std::string& path) {
      const Value& value = program.at(path);
      return static_cast<double>(value.local.count()) / static_cast<double>(value.shape.count());
    };
    const std::string weight = "layers.1.mlp.down.weight";
    EXPECT_EQ(share("adam_m." + weight), zero >= 1 ? 0.5 : 1) << zero;
    EXPECT_EQ(share("grad." + weight), zero >= 2 ? 0.5 : 1) << zero;
    EXPECT_EQ(share(weight), zero >= 3 ? 0.5 : 1) << zero;
  }
}

// A head worth more than all blocks is alone in its stage; one worth about two blocks leaves it two fewer. Of as many
// stages as blocks and ends, the ends have two, and of one less the head has one.
TEST(Choices, TheHeadCountsInTheBalanceOfStages) {
  auto balance = [](int64_t vocab, int stages = 2) {
    Use use{.batch = 1, .seq = 16};
    return balanced_blocks(build_model(tiny("llama", 8, vocab), use, single_rank_mesh()), stages);
  };
  EXPECT_EQ(balance(16, 10), (std::vector<int>{0, 1, 1, 1, 1, 1, 1, 1, 1, 0}));
  EXPECT_EQ(balance(16, 9), (std::vector<int>{1, 1, 1, 1, 1, 1, 1, 1, 0}));
  EXPECT_EQ(balance(16, 8), (std::vector<int>(8, 1)));
  EXPECT_EQ(balance(16), (std::vector<int>{4, 4}));
  EXPECT_EQ(balance(100'000), (std::vector<int>{8, 0}));
  auto cost = [](int64_t layers, int64_t vocab) {
    double flops = 0;
    Graph graph = build_model(tiny("llama", layers, vocab), {.batch = 1, .seq = 16}, single_rank_mesh());
    for (const Op& op : graph.ops) flops += cost_of(graph, op).flops.n;
    return flops;
  };
  double block = cost(2, 16) - cost(1, 16), word = (cost(1, 1016) - cost(1, 16)) / 1000;
  EXPECT_EQ(balance(static_cast<int64_t>(2 * block / word)), (std::vector<int>{5, 3}));
}

// Without backward, what one layer computed is free when the next one does: more layers need no more of it.
TEST(Choices, BuffersThatDoNotLiveTogetherShareMemory) {
  auto working = [](int64_t layers) {
    Use use{.batch = 2, .seq = 16};
    return memory_use(lower(build_model(tiny("llama", layers), use, single_rank_mesh()), cpu_target(1), {})).working.n;
  };
  EXPECT_GT(working(2), 0);
  EXPECT_EQ(working(12), working(2));
}

}  // namespace
}  // namespace sextant
