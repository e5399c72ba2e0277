// Flops: the cases F1 to F14 of the cookbook's calc_transformer_flops.py, and A2, A3 and A14 of the list. Parts are
// read off the ops of the lowered Program.
#include "plan/worked_case.h"

namespace sextant {
namespace {

// One sequence on one rank.
PartFlops trained(const ModelSpec& spec, int64_t seq, Counted counted, const std::string& recompute = "none") {
  LoweredRun run = lowered_of(spec, {.seq = seq, .recompute = recompute});
  return part_flops(run.programs.train[0], counted);
}

struct FlopsCase {
  const char* row;
  ModelSpec spec;
  int64_t seq;
  double tokens;
  double passes;                              // it counts: 3, with recompute 4
  double qkv, scores, out, mlp, embed_logit;  // printed
  double mlp_width = 1;                       // of the MLP that it was not told
};

// GEMMs and the full square of attention are right there, three times forward. Wrong are the head, which it counts
// forward only (beside 4·h per token for looking rows up, which is no GEMM), and the MLP where it ignores
// --ffn-hidden-size (F7) or is not 4 times as wide as the model (F8, F10).
TEST(WorkedFlops, PartsOfTraining) {
  ModelSpec neox = with_vocab(spec_of("gpt-neox-20b"), 51200), gpt3 = with_vocab(spec_of("gpt3-175b"), 51200);
  const FlopsCase cases[] = {
      {"F1", neox, 2048, 3e11, 4, 11.96e21, 1.33e21, 3.99e21, 31.89e21, 188.75e18},
      {"F2", gpt3, 2048, 3e11, 4, 104.37e21, 5.8e21, 34.79e21, 278.31e21, 377.5e18},
      {"F3", spec_of("gpt3-175b"), 2048, 3e11, 3, 78.28e21, 4.35e21, 26.09e21, 208.74e21, 370.55e18},
      {"F7", spec_of("llama2-7b"), 4096, 2e12, 3, 19.33e21, 6.44e21, 6.44e21, 77.31e21, 524.32e18, 11008.0 / 16384},
      {"F8", spec_of("llama2-70b"), 4096, 2e12, 3, 80.53e21, 32.21e21, 64.42e21, 773.09e21, 1.05e21, 3.5 / 4},
      {"F10", spec_of("llama3.1-8b"), 8192, 8192, 3, 39.58e12, 52.78e12, 26.39e12, 316.66e12, 8.61e12, 3.5 / 4},
  };
  for (const FlopsCase& c : cases) {
    PartFlops ours = trained(c.spec, c.seq, Counted::model_full);
    double scale = c.tokens / static_cast<double>(c.seq) * c.passes / 3;
    expect_printed(ours.qkv * scale, c.qkv, c.row);
    expect_printed(ours.attention / 2 * scale, c.scores, c.row);
    expect_printed(ours.out * scale, c.out, c.row);
    expect_printed(ours.mlp * scale / c.mlp_width, c.mlp, c.row);
    double looked_up = 4 * static_cast<double>(c.spec.hidden) * c.tokens;
    expect_printed(ours.head / 3 * c.tokens / static_cast<double>(c.seq) + looked_up, c.embed_logit, c.row);
  }
}

// With full recompute it multiplies all by 4/3. Nobody reads again what the last GEMM of a block gives, so we do not
// compute it twice (nor, in GPT-NeoX, whose halves stand side by side, that of attention); the fused kernel computes
// scores once more in backward; and the head is not in a block.
TEST(WorkedFlops, RecomputeRepeatsWhatIsRead) {
  for (const char* preset : {"gpt-neox-20b", "gpt3-175b"}) {
    bool side_by_side = std::string(preset) == "gpt-neox-20b";
    ModelSpec spec = spec_of(preset);
    spec.layers = 2;  // they are alike
    PartFlops model = trained(spec, 2048, Counted::model_causal);
    PartFlops executed = trained(spec, 2048, Counted::executed, "full");
    EXPECT_NEAR(executed.qkv / model.qkv, 4 / 3.0, 1e-12) << preset;
    EXPECT_NEAR(executed.out / model.out, side_by_side ? 1 : 4 / 3.0, 1e-12) << preset;
    EXPECT_NEAR(executed.mlp / model.mlp, 3.5 / 3, 1e-12) << preset;
    EXPECT_NEAR(executed.attention / model.attention, 9 / 6.0, 1e-12) << preset;
    EXPECT_NEAR(executed.head / model.head, 1, 1e-12) << preset;
  }
}

// Totals with the head three times and the real MLP; Mixtral's is refused with all experts.
TEST(WorkedFlops, Totals) {
  struct Case {
    ModelSpec spec;
    int64_t seq;
    double tokens, full, causal;
  };
  const Case cases[] = {{spec_of("llama2-7b"), 4096, 2e12, 9.21698e22, 8.57274e22},
                        {spec_of("llama2-70b"), 4096, 2e12, 8.88983e23, 8.56770e23},
                        {spec_of("gpt3-175b"), 2048, 3e11, 3.2291e23, 3.1856e23}};
  for (const Case& c : cases) {
    RunPlan plan = plan_of(c.spec, {.seq = c.seq});
    EXPECT_NEAR(plan.flops.model_full * c.tokens / c.full, 1, 2e-5) << c.full;
    // A token sees itself: (s + 1)/2 of the square, not s/2.
    EXPECT_NEAR(plan.flops.model_causal * c.tokens / c.causal, 1, 5e-5) << c.full;
  }
}

// Counted on any mesh, and with any recompute: what the model asks for does not change.
TEST(WorkedFlops, DoNotDependOnTheLayout) {
  ModelSpec spec = spec_of("llama3.2-1b");
  double alone = plan_of(spec, {.seq = 1024}).flops.model_causal;
  for (const RunLayout& layout : {RunLayout{.tp = 4, .seq = 1024}, RunLayout{.pp = 4, .microbatches = 4, .seq = 1024},
                                  RunLayout{.dp = 2, .zero = 3, .seq = 1024, .recompute = "full"}}) {
    RunPlan plan = plan_of(spec, layout);
    EXPECT_NEAR(plan.flops.model_causal / alone, 1, 1e-9);
    EXPECT_GE(plan.flops.executed, plan.flops.model_causal);
  }
  RunPlan twice = plan_of(spec, {.seq = 1024, .recompute = "full"});
  // One more forward of the blocks, but not of the head, which is a large part of so small a model.
  double more = (twice.flops.executed - twice.flops.model_causal) / twice.flops.model_causal;
  EXPECT_GT(more, 0.15);
  EXPECT_LT(more, 1.0 / 3);
}

// F9, F11: reading a prompt. The MLP of F9 is 4 times as wide there; the head is of every position there, and of the
// last here, the only one that is asked for its next token.
TEST(WorkedFlops, PartsOfReadingAPrompt) {
  struct Case {
    const char* row;
    ModelSpec spec;
    int64_t seq;
    double tokens, qkv, scores, out, mlp, embed_logit, mlp_width;
  };
  const Case cases[] = {
      {"F9", spec_of("llama2-70b"), 4096, 1, 13.42e9, 5.37e9, 10.74e9, 128.85e9, 524.32e6, 3.5 / 4},
      {"F11", with_vocab(spec_of("gpt-neox-20b"), 51200), 2048, 2048, 20.41e12, 2.27e12, 6.8e12, 54.43e12, 1.29e12, 1},
  };
  for (const Case& c : cases) {
    PartFlops ours = part_flops(generation_of(c.spec, 1, c.seq, c.seq), Counted::model_full);
    double scale = c.tokens / static_cast<double>(c.seq);
    expect_printed(ours.qkv * scale, c.qkv, c.row);
    expect_printed(ours.attention / 2 * scale, c.scores, c.row);
    expect_printed(ours.out * scale, c.out, c.row);
    expect_printed(ours.mlp * scale / c.mlp_width, c.mlp, c.row);
    expect_printed(ours.head * c.tokens + 4 * static_cast<double>(c.spec.hidden) * c.tokens, c.embed_logit, c.row);
  }
}

// F13: 61 layers are a model; its check of expert intervals refuses every odd number of layers, dense or not.
TEST(WorkedFlops, LayersMayBeOdd) {
  ModelSpec odd = plain_model("neox", {.layers = 61, .hidden = 7168, .heads = 56, .vocab = 51200, .ffn = 4 * 7168});
  PartFlops ours = trained(odd, 2048, Counted::model_full);
  double layer_tokens = 61 * 2048.0, h = 7168;
  EXPECT_DOUBLE_EQ(ours.qkv + ours.out, 6 * 4 * layer_tokens * h * h);
  EXPECT_DOUBLE_EQ(ours.mlp, 6 * 8 * layer_tokens * h * h);
  EXPECT_DOUBLE_EQ(ours.attention, 6 * 2 * layer_tokens * 2048 * h);
  EXPECT_DOUBLE_EQ(ours.head, 6 * 2048.0 * h * 51200);
  RunPlan staged = plan_of(odd, {.pp = 4, .microbatches = 4, .seq = 2048});  // 15, 15, 15 and 16
  EXPECT_NEAR(staged.flops.model_full * 2048 / ours.total(), 1, 1e-12);
}

// A2: Megatron's formula, 96·B·s·L·h²·(1 + s/6h + V/16Lh), is of four passes through the blocks and three through the
// head. The "72-factor" beside it takes three quarters of that, and so counts the head two and a quarter times: V/12Lh
// is right.
TEST(WorkedFlops, MegatronsFormula) {
  ModelSpec gpt3 = with_vocab(spec_of("gpt3-175b"), 51200);
  double batch = 1536;
  PartFlops ours = trained(gpt3, 2048, Counted::model_full);
  double blocks = ours.total() - ours.head;
  EXPECT_NEAR(batch * (blocks * 4 / 3 + ours.head) / 4.510971e18, 1, 1e-6);
  EXPECT_NEAR(batch * (blocks + ours.head * 3 / 4) / 3.383228e18, 1, 1e-6);
  double h = 12288, s = 2048;
  EXPECT_NEAR(ours.total() / (72 * s * 96 * h * h * (1 + s / (6 * h) + 51200 / (12 * 96 * h))), 1, 1e-12);
}

// A3: steps of Llama-3.1-8B at causal counting, and attention's share of them.
TEST(WorkedFlops, AttentionsShareGrowsWithLength) {
  struct Case {
    int64_t seq;
    double tflop, percent;
  };
  for (const Case& c : {Case{8192, 421.646, 12.5}, Case{32768, 2319.901, 36.4}, Case{131072, 19412.702, 69.6},
                        Case{262144, 65847.003, 82.1}}) {
    PartFlops ours = trained(spec_of("llama3.1-8b"), c.seq, Counted::model_causal);
    EXPECT_NEAR(ours.total() / 1e12 / c.tflop, 1, 2e-4) << c.seq;
    EXPECT_NEAR(100 * ours.attention / ours.total(), c.percent, 0.06) << c.seq;
  }
}

// A14: one layer forward, four sequences of 2048 in a model of 4096.
TEST(WorkedFlops, OfALayer) {
  ModelSpec spec = plain_model("gpt2", {.layers = 1, .hidden = 4096, .heads = 32, .vocab = 1024, .ffn = 4 * 4096});
  LoweredRun run = lowered_of(spec, {.microbatch = 4, .seq = 2048});
  PartFlops ours = part_flops(run.programs.train[0], Counted::model_full);
  EXPECT_EQ((ours.qkv + ours.attention + ours.out) / 3, 1'374'389'534'720);
  EXPECT_EQ(ours.mlp / 3, 2'199'023'255'552);
}

}  // namespace
}  // namespace sextant
