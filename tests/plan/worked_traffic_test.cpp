// Bytes on the wire: the volumes people reckon with (data parallelism 2 model sizes, ZeRO-1 and 2 the same, ZeRO-3 3;
// A4 and A5 of the list), against what the Programs send.
#include "plan/worked_case.h"

namespace sextant {
namespace {

constexpr int64_t kRanks = 8;
constexpr double kShare = (kRanks - 1.0) / kRanks;  // a ring sends all parts but one

ModelSpec some_llama() {
  ModelSpec spec = spec_of("llama2-7b");
  spec.layers = 4;
  return spec;
}

// For each parameter.
double sent(int64_t zero, int64_t microbatches) {
  RunPlan plan = plan_of(some_llama(), {.dp = kRanks, .zero = zero, .microbatches = microbatches, .seq = 512});
  return static_cast<double>(plan.sent.at("dp")) / static_cast<double>(plan.parameters);
}

constexpr double kGradient = 4, kWeight = 2;  // bytes: f32 and bf16

// A5: two model sizes of f32 gradients, 16 GB for 2 B parameters, however many microbatches there are.
TEST(WorkedTraffic, DataParallelismSendsTwoModelSizes) {
  EXPECT_NEAR(sent(0, 1), 2 * kGradient * kShare, 1e-6);
  EXPECT_NEAR(sent(0, 4), 2 * kGradient * kShare, 1e-6);
  EXPECT_NEAR(sent(0, 1) * 2e9 / kShare / 1e9, 16, 1e-5);
}

// One of gradients and one of weights; ZeRO-2, which keeps no whole gradients, reduces those of every microbatch.
TEST(WorkedTraffic, ZeroOneAndTwoSendOneOfEach) {
  EXPECT_NEAR(sent(1, 1), (kGradient + kWeight) * kShare, 1e-6);
  EXPECT_NEAR(sent(1, 4), (kGradient + kWeight) * kShare, 1e-6);
  EXPECT_NEAR(sent(2, 1), (kGradient + kWeight) * kShare, 1e-6);
  EXPECT_NEAR(sent(2, 4), (4 * kGradient + kWeight) * kShare, 1e-6);
}

// A4: weights twice and gradients once, for every microbatch. Less the head: head and loss are one op, forward and
// backward, and gather their weights once.
TEST(WorkedTraffic, ZeroThreeSendsThree) {
  ModelSpec spec = some_llama();
  double head = static_cast<double>(spec.vocab * spec.hidden) / static_cast<double>(parameters_of(spec));
  for (int64_t microbatches : {1, 2})
    EXPECT_NEAR(sent(3, microbatches),
                static_cast<double>(microbatches) * (2 * kWeight + kGradient - kWeight * head) * kShare, 1e-6);
}

}  // namespace
}  // namespace sextant
