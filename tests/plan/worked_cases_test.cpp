// Worked cases of the calculators people use: right here where they are right there, and right here where they are wrong, each
// with a line on why. The figures are closed forms of others, not of ours.
#include <gtest/gtest.h>

#include "cost/accelerator.h"
#include "cost/machine_file.h"
#include "models/presets.h"
#include "plan/run_plan.h"
#include "plan/serving.h"

namespace sextant {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;

struct Layout {
  int64_t dp = 1, tp = 1, pp = 1, zero = 0, sequences = 1, microbatch = 1, seq = 0;
  std::string recompute = "none";
};

RunPlan plan_of(const char* preset, const Layout& layout) {
  const Preset* found = find_preset(preset);
  if (!found) throw std::runtime_error(preset);
  ModelSpec spec = found->spec;
  RunConfig run;
  run.mesh.dp = layout.dp, run.mesh.tp = layout.tp, run.mesh.pp = layout.pp, run.mesh.zero = layout.zero;
  run.mesh.sequence_parallel = layout.tp > 1;
  run.batch = {.sequences = layout.sequences, .microbatch = layout.microbatch, .seq = layout.seq};
  run.train.recompute = layout.recompute;
  run.train.eval_every = 0;
  if (spec.max_seq < layout.seq) spec.max_seq = layout.seq;
  LoweredRun lowered = lower_run(run, spec, accelerator_target(own_stack()));
  return make_plan({.run = run, .lowered = lowered});
}

// Totals with logits three times and the real MLP width. The cookbook counts logits forward only, and ignores --ffn-hidden-size.
TEST(WorkedCases, ModelFlops) {
  struct Case {
    const char* preset;
    int64_t seq;
    double tokens, full, causal;
  };
  for (const Case& c : {Case{"llama2-7b", 4096, 2e12, 9.21698e22, 8.57274e22}, Case{"llama2-70b", 4096, 2e12, 8.88983e23, 8.56770e23}}) {
    RunPlan plan = plan_of(c.preset, {.seq = c.seq});
    EXPECT_NEAR(plan.flops.model_full * c.tokens / c.full, 1, 1e-5) << c.preset;
    EXPECT_NEAR(plan.flops.model_causal * c.tokens / c.causal, 1, 5e-5) << c.preset;  // a token sees itself: (s + 1)/2, not s/2
  }
}

TEST(WorkedCases, ModelFlopsOfGpt3) {
  RunPlan plan = plan_of("gpt3-175b", {.seq = 2048});
  EXPECT_NEAR(plan.flops.model_full * 3e11 / 3.2291e23, 1, 2e-3);  // vocabulary 50257 here, 51200 there
  EXPECT_NEAR(plan.flops.model_causal * 3e11 / 3.1856e23, 1, 2e-3);
}

// Counted on any mesh, and with any recompute: what the model asks for does not change.
TEST(WorkedCases, ModelFlopsDoNotDependOnTheLayout) {
  double alone = plan_of("llama3.2-1b", {.seq = 1024}).flops.model_causal;
  for (const Layout& layout : {Layout{.tp = 4, .seq = 1024}, Layout{.pp = 4, .sequences = 4, .seq = 1024},
                               Layout{.dp = 2, .zero = 3, .sequences = 2, .seq = 1024, .recompute = "full"}}) {
    RunPlan plan = plan_of("llama3.2-1b", layout);
    EXPECT_NEAR(plan.flops.model_causal / alone, 1, 1e-9);
    EXPECT_GE(plan.flops.executed, plan.flops.model_causal);
  }
  RunPlan twice = plan_of("llama3.2-1b", {.seq = 1024, .recompute = "full"});
  // One more forward of the blocks, but not of the head, which is a large part of so small a model.
  double more = (twice.flops.executed - twice.flops.model_causal) / twice.flops.model_causal;
  EXPECT_GT(more, 0.15);
  EXPECT_LT(more, 1.0 / 3);
}

// Llama-3.1-8B steps at causal counting (A3 of the list).
TEST(WorkedCases, AttentionsShareGrowsWithLength) {
  for (auto [seq, tflop] : {std::pair<int64_t, double>{8192, 421.646}, {32768, 2319.901}}) {
    RunPlan plan = plan_of("llama3.1-8b", {.seq = seq});
    EXPECT_NEAR(plan.flops.model_causal * static_cast<double>(seq) / 1e12 / tflop, 1, 2e-4) << seq;
  }
}

// 70B on t8 p4 and 16 data-parallel ranks with ZeRO-1: gradients divide by t·p. The cookbook's script says 257.1 GiB of them.
TEST(WorkedCases, GradientsAreDividedByTensorAndPipelineRanks) {
  RunPlan plan = plan_of("llama2-70b", {.dp = 16, .tp = 8, .pp = 4, .zero = 1, .sequences = 64, .seq = 4096, .recompute = "full"});
  double weights = 0, gradients = 0, optimizer = 0;
  for (const RankClass& c : plan.classes) {
    weights += static_cast<double>(c.memory.weights) / 4, gradients += static_cast<double>(c.memory.gradients) / 4;
    optimizer += static_cast<double>(c.memory.optimizer) / 4;
  }
  EXPECT_NEAR(weights / kGiB, 4.015, 0.01);
  EXPECT_NEAR(gradients / kGiB, 8.030, 0.02);
  EXPECT_NEAR(optimizer / kGiB, 1.506 * 10 / 12, 0.02);  // ten bytes of state where others keep twelve (decision 0011)
}

// ZeRO-3 divides once. The script divides by t·p and by all devices.
TEST(WorkedCases, ZeroThreeDividesOnce) {
  RunPlan plan = plan_of("llama2-7b", {.dp = 8, .zero = 3, .sequences = 8, .seq = 2048, .recompute = "full"});
  double parameters = 6738415616.0;
  EXPECT_NEAR(static_cast<double>(plan.classes[0].memory.weights), 2 * parameters / 8, 0.001 * parameters);
  EXPECT_NEAR(static_cast<double>(plan.classes[0].memory.optimizer), 10 * parameters / 8, 0.005 * parameters);
}

// Keys and values: two tensors, of the key-value heads, shared by tensor-parallel ranks. The script forgets the two, the grouping
// and the ranks (42.5 GiB for 70B, truly 1.33).
TEST(WorkedCases, KeyValueCaches) {
  Machine machine = load_machine("h100-sxm");
  Stack stack = own_stack();
  auto serving = [&](const char* preset, int64_t tp, int64_t context) {
    return plan_serving({.spec = find_preset(preset)->spec, .machine = machine, .stack = stack, .tp = tp, .prompt = 128, .context = context});
  };
  EXPECT_EQ(serving("llama2-7b", 1, 4096).cache_bytes_per_sequence, 2147483648);
  EXPECT_EQ(serving("llama3.1-8b", 1, 1024).cache_bytes_per_token, 131072);
  Serving large = serving("llama2-70b", 8, 4096);
  EXPECT_EQ(large.cache_bytes_per_sequence * 8, int64_t{2} * 80 * 8 * 128 * 4096 * 2);
  EXPECT_NEAR(static_cast<double>(large.weight_bytes) * 8, 2.0 * 68976648192, 2e9);
  ASSERT_FALSE(large.batches.empty());
  EXPECT_GT(large.batches.back().tokens_per_s, large.batches.front().tokens_per_s);
}

// Positions are a table only in models that have one: no 8 M parameters of them in a Llama.
TEST(WorkedCases, ParametersByPartSumUp) {
  for (const char* preset : {"gpt2", "llama3.1-8b", "llama3.2-1b"}) {
    RunPlan plan = plan_of(preset, {.seq = 128});
    int64_t sum = 0;
    for (const ParameterCount& part : plan.by_part) sum += part.each * part.times;
    EXPECT_EQ(sum, plan.parameters) << preset;
  }
}

}  // namespace
}  // namespace sextant
