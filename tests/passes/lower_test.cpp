// The whole way down, for both architectures: text forms read back, memory is exact and smaller with recompute, and the
// layouts that infer finds on a mesh are the ones of the literature.
#include "passes/lower.h"

#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "exec/cpu/cpu_executor.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "models/model.h"
#include "ops/ops.h"
#include "passes/infer.h"
#include "passes/memory.h"
#include "targets/cpu/cpu_target.h"

namespace sextant {
namespace {

ModelSpec tiny(std::string architecture) {
  return {.architecture = std::move(architecture),
          .layers = 3,
          .hidden = 32,
          .heads = 4,
          .kv_heads = 4,
          .head_dim = 8,
          .ffn = 64,
          .vocab = 50,
          .max_seq = 16,
          .tied_head = true};
}

Use training() {
  return {.batch = 2, .seq = 16};
}

class BothArchitectures : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Models, BothArchitectures, testing::Values("gpt2", "llama"));

TEST_P(BothArchitectures, TextReadsBackAfterEveryPass) {
  int passes = 0;
  LowerOptions options{.train = Optimizer{}};
  options.plan.recompute = RecomputeMode::full;
  options.observe = [&](std::string_view pass, const std::function<std::string()>& text) {
    EXPECT_EQ(pass, pass_names()[static_cast<size_t>(passes++)]);
    std::string printed = text();
    if (printed.starts_with("graph "))
      EXPECT_EQ(print(parse_graph(printed, find_op)), printed) << pass;
    else
      EXPECT_EQ(print(parse_program(printed, find_op)), printed) << pass;
  };
  lower(build_model(tiny(GetParam()), training(), single_rank_mesh()), cpu_target(2), options);
  EXPECT_EQ(passes, static_cast<int>(pass_names().size()));
}

// A second choice of experts might differ by rounding: the saved one is used.
TEST(Experts, AreChosenOnceHoweverMuchIsComputedAgain) {
  for (RecomputeMode mode : {RecomputeMode::none, RecomputeMode::selective, RecomputeMode::full}) {
    ModelSpec spec = tiny("mixtral");
    spec.tied_head = false;
    spec.experts = ExpertsSpec{.count = 4, .per_token = 2, .ffn = 24, .balance_loss = 0.01};
    LowerOptions options{.train = Optimizer{}};
    options.plan.recompute = mode;
    Program program = lower(build_model(spec, training(), single_rank_mesh()), cpu_target(2), options);
    std::map<std::string_view, int> ops;
    for (const Region& region : program.regions)
      for (const Op& op : region.ops) ++ops[op.def->name];
    EXPECT_EQ(ops["route"], spec.layers);
    EXPECT_EQ(ops["weighted_swiglu"], mode == RecomputeMode::none ? spec.layers : 2 * spec.layers);
  }
}

TEST_P(BothArchitectures, RecomputeSavesLessInOrder) {
  std::map<RecomputeMode, MemoryUse> use;
  for (RecomputeMode mode : {RecomputeMode::none, RecomputeMode::selective, RecomputeMode::full}) {
    LowerOptions options{.train = Optimizer{}};
    options.plan.recompute = mode;
    use[mode] =
        memory_use(lower(build_model(tiny(GetParam()), training(), single_rank_mesh()), cpu_target(2), options));
    const MemoryUse& u = use[mode];
    EXPECT_EQ((u.weights + u.gradients + u.optimizer + u.cache + u.saved + u.working).n, u.total.n);
    EXPECT_EQ(u.gradients.n, 0);  // of one microbatch: they lie where activations have been
    EXPECT_EQ(u.optimizer.n, 2 * u.weights.n);
  }
  EXPECT_LT(use[RecomputeMode::selective].saved, use[RecomputeMode::none].saved);
  EXPECT_LT(use[RecomputeMode::full].saved, use[RecomputeMode::selective].saved);
  EXPECT_LT(use[RecomputeMode::full].total, use[RecomputeMode::none].total);
}

TEST_P(BothArchitectures, HashFollowsTheText) {
  auto hash = [&](double lr_free_clip) {
    return hash_of(lower(build_model(tiny(GetParam()), training(), single_rank_mesh()), cpu_target(2),
                         {.train = Optimizer{.clip = lr_free_clip}}));
  };
  EXPECT_EQ(hash(1.0), hash(1.0));
  EXPECT_NE(hash(1.0), hash(0.5));
}

// Megatron's pattern: one all-reduce after attention and one after the MLP forward (P -> I), and nothing else that
// sends.
TEST_P(BothArchitectures, TensorParallelIsMegatrons) {
  Mesh mesh{{{"pp", 1}, {"dp", 2}, {"cp", 1}, {"tp", 2}}};
  Graph graph = build_model(tiny(GetParam()), training(), mesh);
  infer(graph, Phase::forward);
  int tp = *mesh.find("tp"), dp = *mesh.find("dp");
  std::map<std::string, int> moves;
  for (const Op& op : graph.ops) {
    if (op.def != &ops::redistribute) continue;
    const Layout &from = graph[op.inputs[0]].layout, &to = graph[op.outputs[0]].layout;
    EXPECT_EQ(from.at(dp), to.at(dp)) << op.path;
    ++moves[from.at(tp).text() + to.at(tp).text()];
  }
  EXPECT_EQ(moves["PI"], 2 * 3 + 1);  // Megatron's g, and one for the vocabulary-parallel embedding
  EXPECT_EQ(moves["IR"],
            2 * 3 + 3);  // Megatron's f: nothing forward, all-reduce backward; tokens, and targets and x of the head
  bool biases = GetParam() == std::string("gpt2");
  EXPECT_EQ(moves.contains("IP") ? moves["IP"] : 0,
            biases ? 2 * 3 : 0);  // biases of row-parallel linears are added once
  EXPECT_EQ(moves.size(), biases ? 3u : 2u);
}

TEST_P(BothArchitectures, LocalShapesSplitHeadsAndBatch) {
  Mesh mesh{{{"pp", 1}, {"dp", 2}, {"cp", 1}, {"tp", 2}}};
  Program program = lower(build_model(tiny(GetParam()), training(), mesh), cpu_target(1), {.train = Optimizer{}});
  EXPECT_EQ(program.at("layers.0.attn.qkv.weight").local, (LocalShape{48, 32}));
  EXPECT_EQ(program.at("layers.0.attn.qkv.out").local, (LocalShape{1, 16, 48}));
  EXPECT_EQ(program.at("layers.0.attn.core.y").local, (LocalShape{1, 16, 16}));
  EXPECT_EQ(program.at("layers.0.attn.out.weight").local, (LocalShape{32, 16}));
  EXPECT_EQ(program.at("tokens").local, (LocalShape{1, 16}));
}

TEST(Parse, BadTextNamesTheLine) {
  auto message = [](std::string_view text) {
    try {
      parse_graph(text, find_op);
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(message("grph x"), "line 1: 'grph x'; expected 'graph '");
  EXPECT_EQ(message("graph x\nmesh dp=0"), "line 2: the line ends too early; expected an axis size of at least 1");
  EXPECT_EQ(message("graph x\nmesh dp=1\nvalue %0 feed -1 f32[2] I zeros a\nop %1 = nonsense(%0) {} forward 0 0 p"),
            "line 4: '(%0) {} forward 0 0 p'; expected a known op instead of 'nonsense'");
  EXPECT_EQ(message("graph x\nmesh dp=1\nvalue %0 feed -1 f32[2] I zeros a\n"
                    "op %9 = gelu(%0) {} forward 0 0 compute every -1 p"),
            "line 4: 'p'; expected a known value instead of %9");
}

}  // namespace
}  // namespace sextant
