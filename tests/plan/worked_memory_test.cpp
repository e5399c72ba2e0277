// Weights, gradients and optimizer state: the cases M1 to M21 of the cookbook's calc_transformer_mem.py, ZeRO's table,
// and the VRAM Estimator's. Ours keep 2 bytes of weights, 4 of gradients and 10 of state for each parameter: 16, as
// others do, but the copy of the weights in f32 is their low half beside the bf16 one (decision 0011), so that state
// has 10 bytes where others have 12.
#include "cost/machine_file.h"
#include "plan/foreign_memory.h"
#include "plan/worked_case.h"
#include "validate/foreign.h"

namespace sextant {
namespace {

// Mean over the stages, as the calculators divide.
struct StateBytes {
  double weights = 0, gradients = 0, optimizer = 0;
  double total() const { return weights + gradients + optimizer; }
};

StateBytes state_of(const RunPlan& plan) {
  StateBytes sum;
  auto stages = static_cast<double>(plan.classes.size());
  for (const RankClass& c : plan.classes) {
    sum.weights += static_cast<double>(c.memory.weights) / stages;
    sum.gradients += static_cast<double>(c.memory.gradients) / stages;
    sum.optimizer += static_cast<double>(c.memory.optimizer) / stages;
  }
  return sum;
}

constexpr double kStateHere = 10, kStateThere = 12;

struct MemoryCase {
  const char* row;
  ModelSpec spec;
  RunLayout layout;
  double weights, gradients, optimizer;  // GiB, printed
  // By how much the printed figures are too large (or, below 1, too small).
  double weights_wrong = 1, gradients_wrong = 1, optimizer_wrong = 1;
};

void expect_state(const MemoryCase& c) {
  StateBytes ours = state_of(plan_of(c.spec, c.layout));
  // Printed to 0.01; and its parameters are off by biases, norms and positions.
  auto near = [&](double bytes, double printed) {
    EXPECT_NEAR(bytes / kGiB, printed, 0.006 + 0.005 * printed) << c.row;
  };
  near(ours.weights, c.weights / c.weights_wrong);
  near(ours.gradients, c.gradients / c.gradients_wrong);
  near(ours.optimizer, c.optimizer / c.optimizer_wrong * kStateHere / kStateThere);
}

// clang-format off
TEST(WorkedMemory, StateWhereTheCookbookIsRight) {
  ModelSpec neox = with_vocab(spec_of("gpt-neox-20b"), 51200), llama7 = spec_of("llama2-7b"), llama8 = spec_of("llama3.1-8b");
  const MemoryCase cases[] = {
      {"M1, M4", neox,                    {.microbatches = 2, .seq = 2048},                       38.32, 76.65, 229.95},
      {"M6",     llama7,                  {.microbatches = 2, .seq = 4096},                       12.58, 25.17,  75.50},
      {"M7",     llama7,                  {.dp = 8, .zero = 3, .microbatches = 2, .seq = 4096},    1.57,  3.15,   9.44},
      {"M8",     llama7,                  {.dp = 8, .zero = 2, .microbatches = 2, .seq = 4096},   12.58,  3.15,   9.44},
      {"M11",    spec_of("llama2-70b"),   {.dp = 64, .zero = 3, .microbatches = 2, .seq = 4096},   2.01,  4.02,  12.05},
      {"M16",    llama8,                  {.dp = 8, .zero = 3, .microbatches = 2, .seq = 8192},    1.88,  3.76,  11.27},
      {"M17",    llama8,                  {.dp = 8, .zero = 2, .microbatches = 2, .seq = 8192},   15.02,  3.76,  11.27},
      {"M18",    untied(spec_of("gpt2")), {.microbatch = 8, .microbatches = 2, .seq = 1024},       0.30,  0.61,   1.82},
  };
  for (const MemoryCase& c : cases) expect_state(c);
}

// It does not divide gradients by t·p before ZeRO-2, nor optimizer state before ZeRO-1; and divides weights by them
// twice at ZeRO-3.
TEST(WorkedMemory, TensorAndPipelineRanksDivideEverythingOnce) {
  ModelSpec pythia7 = with_vocab(spec_of("pythia-6.9b"), 51200), pythia12 = with_vocab(spec_of("pythia-12b"), 51200);
  ModelSpec llama70 = spec_of("llama2-70b"), gpt3 = untied(with_vocab(spec_of("gpt3-175b"), 51200));
  const MemoryCase cases[] = {
      {"M2",       pythia7,  {.dp = 64, .tp = 2, .zero = 1, .microbatches = 2, .seq = 2048},           6.40,  25.60,   0.60, 1, 2},
      {"M3",       pythia12, {.dp = 64, .tp = 4, .zero = 1, .microbatches = 2, .seq = 2048},           5.52,  44.19,   0.52, 1, 4},
      {"M10",      llama70,  {.dp = 16, .tp = 8, .pp = 4, .zero = 1, .microbatches = 4, .seq = 4096},  4.02, 257.10,   1.51, 1, 32},
      {"M12",      llama70,  {.dp = 8, .tp = 8, .zero = 3, .microbatches = 2, .seq = 4096},            0.25,   4.02,  12.05, 1 / 8.0},
      {"M13",      llama70,  {.tp = 8, .microbatches = 2, .seq = 4096},                               16.07, 257.10, 771.29, 1, 8, 8},
      {"M14, M15", gpt3,     {.dp = 16, .tp = 8, .pp = 8, .zero = 1, .microbatches = 8, .seq = 2048},  5.10, 652.82,   1.91, 1, 64},
  };
  for (const MemoryCase& c : cases) expect_state(c);
}
// clang-format on

// The same figures computed rightly elsewhere: 70B on t8 p4 and 16 data-parallel ranks, ZeRO-1, gradients in f32.
TEST(WorkedMemory, ThreeDimensionsWithZeroOne) {
  StateBytes ours =
      state_of(plan_of(spec_of("llama2-70b"), {.dp = 16, .tp = 8, .pp = 4, .zero = 1, .microbatches = 4, .seq = 4096}));
  EXPECT_NEAR(ours.weights / kGiB, 4.015, 0.001);
  EXPECT_NEAR(ours.gradients / kGiB, 8.030, 0.002);
  EXPECT_NEAR(ours.optimizer / kGiB, 1.506 * kStateHere / kStateThere, 0.001);
}

// M5: the README's "llama 7B" has an MLP of two matrices (-nl 2) and comes to 6.34 B parameters.
TEST(WorkedMemory, Llama7BHasAGate) {
  StateBytes ours = state_of(plan_of(spec_of("llama-7b"), {.microbatches = 2, .seq = 2048}));
  EXPECT_EQ(ours.weights, 2.0 * 6'738'415'616);
  EXPECT_GT(ours.weights / kGiB, 11.81 * 1.06);
}

// M9: without mixed precision the weights are their own f32 copy, so moments are all the state there is. It adds a copy
// all the same.
TEST(WorkedMemory, WithoutMixedPrecision) {
  StateBytes ours = state_of(plan_of(spec_of("llama2-7b"), {.microbatches = 2, .seq = 4096, .precision = "f32"}));
  EXPECT_NEAR(ours.weights / kGiB, 25.17, 0.08);
  EXPECT_NEAR(ours.gradients / kGiB, 25.17, 0.08);
  EXPECT_NEAR(ours.optimizer / kGiB, 75.50 * 8 / 12, 0.17);
}

// M18 beside the real GPT-2, whose head is its embedding: it has no flag for that.
TEST(WorkedMemory, ATiedHeadIsHeldOnce) {
  EXPECT_EQ(state_of(plan_of(spec_of("gpt2"), {.microbatches = 2, .seq = 1024})).total(), 16.0 * 124'439'808);
}

// M20, M21: other software's optimizers are other bytes for each parameter: Muon's or momentum's 8, gradients of 2.
TEST(WorkedMemory, OptimizersOfOthers) {
  ModelSpec spec = with_vocab(spec_of("gpt-neox-20b"), 51200);
  RunLayout layout{.dp = 8, .zero = 1, .microbatches = 2, .seq = 2048};
  ForeignRun run{.config = run_of(layout), .spec = spec, .machine = "a100-80-sxm", .profile = own_profile()};
  run.profile.optimizer_bytes = 8;
  LoweredRun lowered = lowered_of(spec, layout);
  Machine machine = load_machine("a100-80-sxm");
  ForeignMemory muon = foreign_memory(lowered, run.config, run.profile, machine);
  EXPECT_NEAR(muon.weights / kGiB, 38.32, 0.1);
  EXPECT_NEAR(muon.gradients / kGiB, 76.65, 0.2);
  EXPECT_NEAR(muon.optimizer / kGiB, 19.16, 0.05);
  run.profile.gradient_bytes = 2;
  EXPECT_NEAR(foreign_memory(lowered, run.config, run.profile, machine).gradients / kGiB, 38.32, 0.1);
}

// ZeRO's stages at 2 + 2 + 12 bytes. Ours are 2 + 4 + 10: the same at stages 0, 2 and 3; at stage 1 every rank holds
// gradients in f32, 2 bytes more.
TEST(WorkedMemory, ZeroStages) {
  struct Case {
    ModelSpec spec;
    double parameters;
    int64_t ranks;
    double gigabytes[4];
  };
  // 7.5 B is nobody's model: the bytes of one parameter are those of another. So it is with a few layers for many.
  ModelSpec some = spec_of("gpt3-6.7b"), large = spec_of("llama2-70b");
  some.layers = large.layers = 4;
  const Case cases[] = {{some, 7.5e9, 64, {120, 31.406, 16.641, 1.875}},
                        {spec_of("llama2-7b"), 6738415616.0, 8, {107.815, 37.061, 25.269, 13.477}},
                        {large, 68976648192.0, 64, {1103.626, 288.840, 153.042, 17.244}}};
  for (const Case& c : cases)
    for (int64_t stage = 0; stage < 4; ++stage) {
      RunPlan plan = plan_of(c.spec, {.dp = c.ranks, .zero = stage, .microbatches = 2, .seq = 1024});
      double expected = c.gigabytes[stage] * 1e9;
      if (stage == 1) expected += (2 - 2.0 / static_cast<double>(c.ranks)) * c.parameters;
      double ours = state_of(plan).total() * c.parameters / static_cast<double>(plan.parameters);
      EXPECT_NEAR(ours / expected, 1, 3e-4) << c.parameters << " stage " << stage;
    }
}

// V1 to V4, the VRAM Estimator: weights twice (4 and 2 bytes) beside 4 of gradients and 8 of moments, 18 bytes where 16
// do, of parameters that are its own (6.772 B).
TEST(WorkedMemory, TheVramEstimatorsState) {
  double parameters = 6738415616.0;
  StateBytes alone = state_of(plan_of(spec_of("llama2-7b"), {.microbatch = 4, .microbatches = 2, .seq = 512}));
  EXPECT_EQ(alone.total(), 16 * parameters);
  EXPECT_NEAR(alone.gradients / kGiB, 25.228, 0.13);  // V1, V2
  EXPECT_LT(alone.total() / kGiB, 37.841 + 3 * 25.228);
  StateBytes eight = state_of(plan_of(spec_of("llama2-7b"), {.dp = 8, .zero = 3, .microbatches = 2, .seq = 4096}));
  EXPECT_NEAR(eight.total() / (16 * parameters / 8), 1, 1e-3);
  EXPECT_NEAR(eight.gradients / kGiB, 3.153, 0.02);  // V3
  StateBytes many = state_of(plan_of(spec_of("llama2-70b"), {.dp = 64, .zero = 3, .microbatches = 2, .seq = 4096}));
  EXPECT_NEAR(many.gradients / kGiB, 4.075, 0.07);  // V4: 70.0 B there, 68.98 B in truth
  EXPECT_NEAR(many.weights / kGiB, 6.112 / 3, 0.04);
}

// The context of driver and libraries is a line of its own: 1000 MiB there, the machine's here.
TEST(WorkedMemory, TheDeviceContextIsCounted) {
  RunLayout layout{.microbatches = 2, .seq = 512};
  LoweredRun lowered = lowered_of(spec_of("gpt2"), layout);
  Machine machine = load_machine("a100-80-sxm");
  SoftwareProfile profile = own_profile();
  RunPlan plan = make_plan({.run = run_of(layout), .lowered = lowered, .machine = &machine, .profile = &profile});
  EXPECT_GE(plan.classes[0].memory.overhead, 1000 << 20);
  EXPECT_EQ(plan.peak_bytes, plan.classes[0].memory.total());
  EXPECT_EQ(plan.peak_bytes - plan.classes[0].memory.overhead, lowered.programs.train[0].arena_bytes);
}

}  // namespace
}  // namespace sextant
