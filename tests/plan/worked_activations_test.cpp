// Activations: the closed forms of Korthikanti et al. 2022, the activation columns of the cookbook's cases M1 to M18
// and of the VRAM Estimator's V1 to V4, and a published breakdown at 32,768 tokens.
//
// The closed forms keep 34 bytes for each element of a block's input, and 5·a·s/h for scores. Ours keep 32: no masks of
// dropout (2 × 1 byte), and of scores only the log-sum-exp of each row, because the attention kernel is fused. So
// without recompute we keep what they call selective, less the masks. "Small" below is what is ours alone and no tensor
// of s·b·h.
#include "cost/machine_file.h"
#include "plan/foreign_memory.h"
#include "plan/worked_case.h"
#include "validate/foreign.h"

namespace sextant {
namespace {

double saved_by(const ModelSpec& spec, const RunLayout& layout, size_t stage = 0) {
  return static_cast<double>(memory_use(lowered_of(spec, layout).programs.train[stage]).saved.n);
}

// Row statistics of attention (4 bytes for each head) and norms (4 for each of mean and rate), and outside the blocks
// what enters the last norm and what leaves it.
double small_bytes(const ModelSpec& m, const RunLayout& layout) {
  auto d = [](int64_t n) { return static_cast<double>(n); };
  double per_norm = m.architecture == "llama" ? 4 : 8, tokens = d(layout.microbatch * layout.seq), t = d(layout.tp);
  double along_sequence = layout.sequence_parallel ? t : 1;
  double norms = layout.recompute == "none" ? 2 * per_norm / along_sequence : 0;  // else computed again
  double blocks = layout.recompute == "full" ? 0 : d(m.layers) * (4 * d(m.heads) / t + norms);
  return tokens * (blocks + (4 * d(m.hidden) + per_norm) / along_sequence);
}

struct Recomputes {
  double none, selective, full;  // GiB
};
struct PaperCase {
  PlainShape shape;
  int64_t batch, seq;
  Recomputes alone, split, split_with_sequence;  // t = 1, 8, and 8 with sequence parallelism
};

// clang-format off
const PaperCase kPaper[] = {
    {{ 48,  6144,  64, 51200, 4 *  6144}, 4, 2048, {316.5, 76.5, 4.5},         {59.25, 29.25, 4.5},    {39.563, 9.562, 0.562}},
    {{ 96, 12288,  96, 51200, 4 * 12288}, 1, 2048, {256.5, 76.5, 4.5},         {51.75, 29.25, 4.5},    {32.062, 9.562, 0.562}},
    {{105, 20480, 128, 51200, 4 * 20480}, 1, 2048, {401.953, 139.453, 8.203},  {86.133, 53.32, 8.203}, {50.244, 17.432, 1.025}},
    {{128, 25600, 160, 51200, 4 * 25600}, 1, 2048, {612.5, 212.5, 12.5},       {131.25, 81.25, 12.5},  {76.562, 26.562, 1.562}},
    {{ 32,  4096,  32, 32000, 4 *  4096}, 1, 4096, {97, 17, 1},                {16.5, 6.5, 1},         {12.125, 2.125, 0.125}},
    {{ 80,  8192,  64, 32000, 4 *  8192}, 1, 4096, {485, 85, 5},               {82.5, 32.5, 5},        {60.625, 10.625, 0.625}},
};
// clang-format on

RunLayout layout_of(const PaperCase& c, int64_t tp, bool sequence_parallel, const char* recompute) {
  return {
      .tp = tp, .microbatch = c.batch, .seq = c.seq, .recompute = recompute, .sequence_parallel = sequence_parallel};
}

// All figures are of layers alone, and grow with them: a few layers tell as much as all.
constexpr int64_t kFewLayers = 2;

TEST(WorkedActivations, OfThePapersModels) {
  for (const PaperCase& c : kPaper) {
    ModelSpec spec = plain_model("gpt2", c.shape);
    double times = static_cast<double>(spec.layers) / static_cast<double>(kFewLayers);
    double input = 2.0 * static_cast<double>(c.batch * c.seq * spec.hidden * spec.layers) / kGiB;  // of all blocks
    spec.layers = kFewLayers;
    auto expect = [&](const RunLayout& layout, double figure) {
      double ours = times * (saved_by(spec, layout) - small_bytes(spec, layout)) / kGiB;
      EXPECT_NEAR(ours, figure, 0.00051) << spec.hidden << " t" << layout.tp << " " << layout.recompute;
    };
    expect(layout_of(c, 1, false, "none"), c.alone.selective - input);
    // Ours computes norms (4) and the activation (8) again; there are no scores to compute again.
    expect(layout_of(c, 1, false, "selective"), c.alone.selective * 20 / 34);
    expect(layout_of(c, 1, false, "full"), c.alone.full);
    expect(layout_of(c, 8, false, "none"), c.split.selective - input);  // masks are whole on every rank
    expect(layout_of(c, 8, false, "full"), c.split.full);
    expect(layout_of(c, 8, true, "none"), c.split_with_sequence.selective - input / 8);
    expect(layout_of(c, 8, true, "full"), c.split_with_sequence.full);
  }
}

// Software that writes scores and masks, as the paper's did, is charged for them: the first column.
TEST(WorkedActivations, OfSoftwareThatKeepsScores) {
  Machine machine = load_machine("a100-80-sxm");
  for (const PaperCase& c : kPaper) {
    ModelSpec spec = plain_model("gpt2", c.shape);
    double times = static_cast<double>(spec.layers) / static_cast<double>(kFewLayers);
    spec.layers = kFewLayers;
    auto ratio = [&](int64_t tp, bool sequence_parallel, double figure) {
      RunLayout layout = layout_of(c, tp, sequence_parallel, "none");
      ForeignRun run{.config = run_of(layout), .spec = spec, .machine = "a100-80-sxm", .profile = own_profile()};
      run.profile.attention = AttentionKernel::unfused;
      run.profile.dropout = true;
      if (spec.max_seq < c.seq) spec.max_seq = c.seq;
      double kept = foreign_memory(lower_run(run.config, spec, planned_target(run.profile), Checks::none), run.config,
                                   run.profile, machine)
                        .saved;
      return times * (kept - small_bytes(spec, layout)) / kGiB / figure;
    };
    // Masks of dropout outside attention, 2·s·b·h, are not counted; without sequence parallelism they are whole on
    // every rank.
    EXPECT_NEAR(ratio(1, false, c.alone.none), 1, 0.021) << spec.hidden;
    EXPECT_NEAR(ratio(8, true, c.split_with_sequence.none), 1, 0.021) << spec.hidden;
    EXPECT_NEAR(ratio(8, false, c.split.none), 1, 0.096) << spec.hidden;
  }
}

struct ColumnCase {
  const char* row;
  ModelSpec spec;
  RunLayout layout;
  double gigabytes;    // printed
  double there, here;  // bytes for each element of s·b·h and layer: by its rule, and what this model keeps
};

// Its -ca is called checkpointing and is selective recompute; -pa divides by t; without -ca there are 5·a·s/h of
// scores. A gated MLP keeps three tensors of its own width, grouped keys and values are narrower than queries, and
// GPT-NeoX's halves read one input: it knows none of that.
TEST(WorkedActivations, OfTheCookbooksCases) {
  ModelSpec neox = spec_of("gpt-neox-20b"), llama7 = spec_of("llama2-7b"), llama70 = spec_of("llama2-70b"),
            llama8 = spec_of("llama3.1-8b");
  const double kGpt = 32, kNeox = 30;
  // Of key heads over query heads, and the MLP's width over the model's.
  auto llama = [](double r, double f) { return 12 + 4 * r + 6 * f; };
  for (const ColumnCase& c : {
           ColumnCase{"M1", neox, {.seq = 2048}, 72.53, 34 + 5 * 64 * 2048 / 6144.0, kNeox},
           ColumnCase{"M2", spec_of("pythia-6.9b"), {.tp = 2, .microbatch = 8, .seq = 2048}, 34.00, 34, kNeox},
           ColumnCase{"M3", spec_of("pythia-12b"), {.tp = 4, .microbatch = 8, .seq = 2048}, 23.91, 34, kNeox},
           ColumnCase{"M4, M20, M21", neox, {.seq = 2048}, 17.53, 34, kNeox},
           ColumnCase{"M5, M6, M9", llama7, {.seq = 4096}, 97.00, 34 + 5 * 32.0, llama(1, 11008 / 4096.0)},
           ColumnCase{"M7, M8", llama7, {.seq = 4096}, 17.00, 34, llama(1, 11008 / 4096.0)},
           ColumnCase{"M11", llama70, {.seq = 4096}, 85.00, 34, llama(0.125, 3.5)},
           ColumnCase{"M12, M13", llama70, {.tp = 8, .seq = 4096}, 10.62, 34, llama(0.125, 3.5)},
           ColumnCase{"M16", llama8, {.seq = 8192}, 34.00, 34, llama(0.25, 3.5)},
           ColumnCase{"M17", llama8, {.seq = 8192}, 354.00, 34 + 5 * 32 * 2.0, llama(0.25, 3.5)},
           ColumnCase{"M18", spec_of("gpt2"), {.microbatch = 8, .seq = 1024}, 8.02, 34 + 5 * 12 * 1024 / 768.0, kGpt},
       }) {
    double ours = (saved_by(c.spec, c.layout) - small_bytes(c.spec, c.layout)) / kGiB;
    EXPECT_NEAR(ours, c.gigabytes * c.here / c.there, 0.006) << c.row;
  }
}

// M10, M14, M15: it never divides activations by p. That is right for the first stage, which under 1F1B holds p
// microbatches of its p-th part of the layers, and too much for the others, the last of which holds one.
TEST(WorkedActivations, OfPipelinesAreThoseInFlight) {
  struct Case {
    const char* row;
    ModelSpec spec;
    int64_t pp, seq;
    double gigabytes, there, here;
  };
  for (const Case& c : {Case{"M10", spec_of("llama2-70b"), 4, 4096, 10.62, 34, 33.5},
                        Case{"M15, and M14 without its scores", spec_of("gpt3-175b"), 8, 2048, 9.56, 34, 32}}) {
    RunLayout layout{.tp = 8, .pp = c.pp, .microbatches = 2 * c.pp, .seq = c.seq};
    LoweredRun run = lowered_of(c.spec, layout);
    auto saved = [&](int64_t stage) {
      return static_cast<double>(memory_use(run.programs.train[static_cast<size_t>(stage)]).saved.n);
    };
    EXPECT_NEAR(saved(0) / kGiB / (c.gigabytes * c.here / c.there), 1, 0.02) << c.row;
    for (int64_t stage = 1; stage + 1 < c.pp; ++stage)
      EXPECT_NEAR(saved(stage) / saved(1), static_cast<double>(c.pp - stage) / static_cast<double>(c.pp - 1), 0.01)
          << c.row << " stage " << stage;
    layout.microbatches = 1;  // never more of them than there are
    EXPECT_NEAR(saved_by(c.spec, layout) / saved(0), 1.0 / static_cast<double>(c.pp), 0.01) << c.row;
  }
}

// V1 to V4: B·(h + 2·ad + 2·kd) + B·(h + 2f) + 2·B·h + masks + scores. Fused attention keeps no scores, nobody here
// drops out, and a gated MLP has a third tensor of width f. Its "outputs", 8·b·s·V, are not there either: head and loss
// are one op.
TEST(WorkedActivations, OfTheVramEstimatorsCases) {
  struct Case {
    const char* row;
    ModelSpec spec;
    int64_t batch, seq;
    double gigabytes;
  };
  for (const Case& c :
       {Case{"V1, V2", spec_of("llama2-7b"), 4, 512, 12.188}, Case{"V3", spec_of("llama2-7b"), 1, 4096, 94.375},
        Case{"V4", spec_of("llama2-70b"), 1, 4096, 471.25}}) {
    double h = static_cast<double>(c.spec.hidden), tokens = static_cast<double>(c.batch * c.seq * c.spec.layers);
    double scores = 5 * static_cast<double>(c.spec.heads * c.seq), masks = 2 * h;
    double gate = 2 * static_cast<double>(c.spec.ffn);
    RunLayout layout{.microbatch = c.batch, .seq = c.seq};
    double ours = saved_by(c.spec, layout) - small_bytes(c.spec, layout);
    EXPECT_NEAR(ours / kGiB, c.gigabytes + tokens * (gate - scores - masks) / kGiB, 0.006) << c.row;
  }
}

// Llama-3.1-8B at 32,768 tokens with full recompute [published: checkpoints 8.0, one layer at work 7.0, logits 15.656,
// in all 31 GiB].
TEST(WorkedActivations, OfALongSequence) {
  ModelSpec spec = spec_of("llama3.1-8b");
  RunLayout layout{.microbatches = 2, .seq = 32768, .recompute = "full"};
  MemoryUse use = memory_use(lowered_of(spec, layout).programs.train[0]);
  EXPECT_EQ((static_cast<double>(use.saved.n) - small_bytes(spec, layout)) / kGiB, 8.0);
  EXPECT_LT(static_cast<double>(use.working.n) / kGiB, 7.0);  // a layer at work, and never all the logits
  EXPECT_GT(static_cast<double>(use.working.n) / kGiB, 7.0 / 2);
}

}  // namespace
}  // namespace sextant
