// FLOPs of a token in models with experts, against counts made by hand from the parameters that a token goes through
// (six for each, without the input embedding) and causal attention, at 4096 positions.
#include <gtest/gtest.h>

#include "cost/planned_target.h"
#include "models/presets.h"
#include "plan/predict.h"

namespace sextant {

namespace {

double gigaflops_of(const char* preset, const MeshSection& mesh = {}) {
  RunConfig run;
  run.batch = {.sequences = mesh.dp, .microbatch = 1, .seq = 4096};
  run.mesh = mesh;
  run.train.eval_every = 0;
  LoweredRun lowered = lower_run(run, find_preset(preset)->spec, planned_target(own_profile()), Checks::none);
  return flops_per_token(lowered, run.batch).model_causal / 1e9;
}

TEST(ExpertFlops, OfReleasedModels) {
  struct Case {
    const char* preset;
    double gigaflops;
  };
  for (const Case& c : {Case{"mixtral-8x7b", 79.7}, Case{"mixtral-8x22b", 242.2}, Case{"qwen3-30b-a3b", 23.1},
                        Case{"qwen3-235b-a22b", 148.3}, Case{"olmoe-1b-7b", 7.88}, Case{"deepseek-v2-lite", 16.4},
                        Case{"deepseek-v3", 250.5}})
    EXPECT_NEAR(gigaflops_of(c.preset), c.gigaflops, 0.003 * c.gigaflops) << c.preset;
}

// Ranks of tensor parallelism repeat the router and the narrow projections of latent attention: that is executed, and
// no more work of the model.
TEST(ExpertFlops, CountOnceWhatRanksRepeat) {
  MeshSection tensor{.tp = 8}, experts{.dp = 8, .ep = 8};
  EXPECT_DOUBLE_EQ(gigaflops_of("deepseek-v2-lite", tensor), gigaflops_of("deepseek-v2-lite"));
  EXPECT_DOUBLE_EQ(gigaflops_of("deepseek-v2-lite", experts), gigaflops_of("deepseek-v2-lite"));
}

}  // namespace

}  // namespace sextant
