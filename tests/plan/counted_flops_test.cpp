// Model flops against a count of every multiply-add of a real, naive training step: loops that do the arithmetic's
// trips and nothing else.
#include <gtest/gtest.h>

#include "cost/planned_target.h"
#include "models/presets.h"
#include "plan/predict.h"
#include "plan/stage_flops.h"

namespace sextant {
namespace {

// y[rows, columns] = Σ over depth, trip by trip.
struct Counter {
  double multiply_adds = 0;
  void gemm(int64_t rows, int64_t columns, int64_t depth) {
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c)
        for (int64_t d = 0; d < depth; ++d) multiply_adds += 1;
  }
  // Forward, the gradient of its input and the gradient of its weight.
  void trained(int64_t tokens, int64_t outputs, int64_t inputs) {
    gemm(tokens, outputs, inputs), gemm(tokens, inputs, outputs), gemm(outputs, inputs, tokens);
  }
};

TEST(CountedFlops, EqualTheModelFlopsOfTheProgram) {
  constexpr int64_t kSeq = 12, kHidden = 32, kHeads = 4, kKvHeads = 2, kHead = 8, kFfn = 48, kVocab = 40, kLayers = 2,
                    kBatch = 2;
  ModelSpec spec{.architecture = "llama",
                 .layers = kLayers,
                 .hidden = kHidden,
                 .heads = kHeads,
                 .kv_heads = kKvHeads,
                 .head_dim = kHead,
                 .ffn = kFfn,
                 .vocab = kVocab,
                 .max_seq = kSeq};
  Counter counter;
  int64_t tokens = kBatch * kSeq;
  for (int64_t layer = 0; layer < kLayers; ++layer) {
    counter.trained(tokens, (kHeads + 2 * kKvHeads) * kHead, kHidden);
    for (int64_t b = 0; b < kBatch; ++b)
      for (int64_t h = 0; h < kHeads; ++h)
        for (int64_t q = 0; q < kSeq; ++q) {
          int64_t seen = q + 1;
          // Scores and their sum with the values; backward dv, dp, dq and dk.
          for (int gradient = 0; gradient < 6; ++gradient) counter.gemm(1, seen, kHead);
        }
    counter.trained(tokens, kHidden, kHeads * kHead);
    counter.trained(tokens, 2 * kFfn, kHidden);
    counter.trained(tokens, kHidden, kFfn);
  }
  counter.trained(tokens, kVocab, kHidden);

  RunConfig run;
  run.batch = {.sequences = kBatch, .microbatch = 1, .seq = kSeq};
  run.train.eval_every = 0;
  LoweredRun lowered = lower_run(run, spec, planned_target(own_profile()));
  EXPECT_NEAR(flops_per_token(lowered, run.batch).model_causal * static_cast<double>(tokens), 2 * counter.multiply_adds,
              1e-6 * counter.multiply_adds);
}

// DeepSeek-V3 with its module of multi-token prediction, as Megatron counts it: the head twice, a layer more.
TEST(CountedFlops, OfMultiTokenPrediction) {
  RunConfig run;
  run.batch = {.sequences = 1, .microbatch = 1, .seq = 4096};
  run.train.eval_every = 0;
  ModelSpec spec = find_preset("deepseek-v3")->spec;
  spec.architecture = "deepseek_v3";
  auto gigaflops = [&](int64_t depths) {
    spec.mtp_depths = depths;
    LoweredRun lowered = lower_run(run, spec, planned_target(own_profile()), Checks::none);
    return flops_per_token(lowered, run.batch).model_causal / 1e9;
  };
  EXPECT_NEAR(gigaflops(0), 250.5, 0.05);
  EXPECT_NEAR(gigaflops(1), 260.6, 0.05);
}

// With deferred weight gradients each stage has three times: forward once, and backward its two halves. Those of the
// weights have as many flops as forward has in GEMMs with weights.
TEST(CountedFlops, StagesWithDeferredWeightGradients) {
  ModelSpec spec{.architecture = "llama",
                 .layers = 4,
                 .hidden = 64,
                 .heads = 4,
                 .kv_heads = 4,
                 .head_dim = 16,
                 .ffn = 128,
                 .vocab = 96,
                 .max_seq = 32};
  RunConfig run;
  run.mesh.pp = 2;
  run.pipeline.schedule = ScheduleKind::zb_h1;
  run.pipeline.layers = "2,2";
  run.batch = {.sequences = 4, .microbatch = 1, .seq = 32};
  run.train.eval_every = 0;
  LoweredRun lowered = lower_run(run, spec, planned_target(own_profile()));
  Durations flops = stage_flops(lowered.programs, make_schedule("zb-h1", {2, 1, 4}), {1});
  double block =
      2.0 * 32 * (3 * 64 * 64 + 64 * 64 + 2 * 128 * 64 + 128 * 64);  // of 32 tokens: qkv, out, gate and up, down
  EXPECT_EQ(flops.weight[0], 2 * block + 32 * 64);  // and the embedding's: an addition for each element of a row
  EXPECT_GT(flops.forward[0], 2 * block);           // attention, norms and the embedding too
  EXPECT_GT(flops.backward[0], flops.weight[0]);
}

}  // namespace
}  // namespace sextant
