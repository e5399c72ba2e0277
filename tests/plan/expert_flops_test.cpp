// Model flops of published models with experts, at 4096 tokens in a sequence: six for each parameter that a token goes
// through, and causal attention. Printed figures have the precision that is given here.
#include <gtest/gtest.h>

#include "cost/planned_target.h"
#include "plan/predict.h"
#include "worked_case.h"

namespace sextant {
namespace {

struct ExpertFlops {
  const char* preset;
  double weights, attention;  // GFLOP per token, forward and backward
};

void PrintTo(const ExpertFlops& c, std::ostream* out) {
  *out << c.preset;
}

class ExpertFlopsOf : public testing::TestWithParam<ExpertFlops> {};

TEST_P(ExpertFlopsOf, AreThePublishedOnes) {
  const ExpertFlops& c = GetParam();
  double all = plan_of(spec_of(c.preset), {.seq = 4096}).flops.model_causal / 1e9;
  // Weights of norms and biases multiply nothing in a GEMM; a token sees itself.
  EXPECT_NEAR(all / (c.weights + c.attention), 1, 0.0025) << all;
}

INSTANTIATE_TEST_SUITE_P(
    Published, ExpertFlopsOf,
    testing::Values(ExpertFlops{"mixtral-8x7b", 76.49, 3.22}, ExpertFlops{"mixtral-8x22b", 233.8, 8.5},
                    ExpertFlops{"qwen3-30b-a3b", 18.25, 4.83}, ExpertFlops{"qwen3-235b-a22b", 129.4, 18.9},
                    ExpertFlops{"olmoe-1b-7b", 7.07, 0.81}, ExpertFlops{"deepseek-v2-lite", 14.7, 1.7},
                    ExpertFlops{"deepseek-v3", 219.8, 30.7}, ExpertFlops{"gpt-oss-20b", 21.65, 1.28},
                    ExpertFlops{"llama4-scout", 6 * 16.138408960, 6.04},
                    ExpertFlops{"llama4-maverick", 6 * 16.150205440, 6.04}));

// Of Scout's 48 layers 12 see all tokens, and 36 those of chunks of 8192.
TEST(ExpertFlopsOfChunks, GrowWithSequencesInLayersWithoutChunks) {
  auto flops_at = [](int64_t seq) { return plan_of(spec_of("llama4-scout"), {.seq = seq}).flops.model_causal; };
  auto seen = [](double positions) { return (positions + 1) / 2; };  // keys by a query in the mean
  double more = 12 * (seen(16384) - seen(4096)) + 36 * (seen(8192) - seen(4096));
  EXPECT_NEAR(flops_at(16384) - flops_at(4096), 12 * 40 * 128 * more, 1);
}

// Ranks of tensor parallelism repeat the router and the narrow projections of latent attention: that is executed, and
// no more work of the model.
TEST(ExpertFlopsOnMeshes, CountOnceWhatRanksRepeat) {
  auto flops_on = [](const MeshSection& mesh) {
    RunConfig run;
    run.batch = {.sequences = mesh.dp, .microbatch = 1, .seq = 4096};
    run.mesh = mesh;
    run.train.eval_every = 0;
    LoweredRun lowered = lower_run(run, spec_of("deepseek-v2-lite"), planned_target(own_profile()), Checks::none);
    return flops_per_token(lowered, run.batch).model_causal;
  };
  EXPECT_DOUBLE_EQ(flops_on({.tp = 8}), flops_on({}));
  EXPECT_DOUBLE_EQ(flops_on({.dp = 8, .ep = 8}), flops_on({}));
}

}  // namespace
}  // namespace sextant
