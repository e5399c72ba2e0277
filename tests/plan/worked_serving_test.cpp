// Inference: the cases M22 to M24 of the cookbook's calc_transformer_mem.py, V5 and V6 of the VRAM Estimator, and known
// caches. The cookbook forgets that there are keys and values (a factor of 2), that their heads may be fewer, and that
// tensor-parallel ranks share them; the estimator has no cache at all.
#include "cost/machine_file.h"
#include "plan/serving.h"
#include "plan/worked_case.h"

namespace sextant {
namespace {

MemoryUse use_of(const ModelSpec& spec, int tp, int64_t seq, int64_t context) {
  return memory_use(generation_of(spec, tp, seq, context));
}

TEST(WorkedServing, CachesAsComputedElsewhere) {
  struct Case {
    const char* preset;
    int64_t context, bytes;
  };
  for (const Case& c : {Case{"llama2-7b", 4096, 2'147'483'648}, Case{"llama2-70b", 4352, 1'426'063'360},
                        Case{"llama3.1-8b", 1, 131'072}, Case{"llama3.1-8b", 131072, int64_t{16} << 30},
                        Case{"llama3.1-70b", 131072, int64_t{40} << 30},
                        Case{"llama3.1-405b", 131072, int64_t{63} << 30}, Case{"gpt3-175b", 2048, int64_t{9} << 30}})
    EXPECT_EQ(use_of(spec_of(c.preset), 1, 1, c.context).cache.n, c.bytes) << c.preset << " " << c.context;
  // Caches hold DeepSeek-V3's keys and values whole, not the 70,272 bytes of its narrow rows for each token.
  EXPECT_EQ(use_of(spec_of("deepseek-v3"), 1, 1, 1).cache.n, 61 * 128 * (192 + 128) * 2);
}

TEST(WorkedServing, TheCookbooksCases) {
  // M22: 42.5 GiB of cache there, 5.31 on each of 8; 1.3281 and 0.166 in truth.
  MemoryUse large = use_of(spec_of("llama2-70b"), 8, 4096, 4352);
  EXPECT_NEAR(static_cast<double>(large.cache.n) / kGiB, 0.166, 0.0005);
  EXPECT_NEAR(static_cast<double>(large.cache.n) * 8 / kGiB, 1.3281, 0.0001);
  EXPECT_NEAR(static_cast<double>(large.weights.n) / kGiB, 16.07, 0.02);
  EXPECT_LT(static_cast<double>(large.working.n) / kGiB, 1.06);  // one layer whole there, an eighth of one here
  // M23: 32 GiB there, for 128 sequences of 1024; 16 in truth.
  EXPECT_EQ(128 * use_of(spec_of("llama3.1-8b"), 1, 1, 1024).cache.n, int64_t{16} << 30);
  EXPECT_NEAR(static_cast<double>(use_of(spec_of("llama3.1-8b"), 1, 1, 1024).weights.n) / kGiB, 14.97, 0.02);
  // M24: 0.54 GiB on each of 2 at one byte and without the 2 for keys and values. We serve in bf16: two bytes, and
  // twice that.
  MemoryUse neox = use_of(spec_of("gpt-neox-20b"), 2, 1, 2148);
  EXPECT_EQ(neox.cache.n, 2 * 2 * 44 * 6144 * int64_t{2148} / 2);
  EXPECT_NEAR(static_cast<double>(neox.cache.n) / kGiB, 2 * 0.54, 0.01);
  EXPECT_NEAR(static_cast<double>(neox.weights.n) / kGiB, 2 * 9.58, 0.03);
}

// V5 counts scores and heads of one layer whole on each of 8 devices (5.89 GiB, with which the cache would fit many
// times).
TEST(WorkedServing, TheVramEstimatorsCases) {
  MemoryUse large = use_of(spec_of("llama2-70b"), 8, 4096, 4096);
  EXPECT_NEAR(static_cast<double>(large.weights.n) / (2.0 * 68976648192 / 8), 1, 1e-3);  // 70.0 B there: 16.298 GiB
  EXPECT_EQ(large.cache.n, int64_t{2} * 80 * 8 * 128 * 4096 * 2 / 8);
  EXPECT_LT(static_cast<double>(large.working.n) / kGiB, 5.891 / 8);
  MemoryUse mistral = use_of(spec_of("mistral-7b"), 1, 4096, 4096);
  EXPECT_EQ(mistral.weights.n, 2 * int64_t{7'241'732'096});  // V6: 7.51 B there, 13.988 GiB
  EXPECT_EQ(mistral.cache.n, int64_t{512} << 20);
  EXPECT_LT(static_cast<double>(mistral.working.n) / kGiB, 2.953);  // its scores are written out
}

// The bytes that `sextant plan-serving` states are those that these Programs hold.
TEST(WorkedServing, PlansSayTheSame) {
  Machine machine = load_machine("h100-sxm");
  SoftwareProfile profile = own_profile();
  auto serving = [&](const char* preset, int64_t tp, int64_t context) {
    return plan_serving(
        {.spec = spec_of(preset), .machine = machine, .profile = profile, .tp = tp, .prompt = 128, .context = context});
  };
  EXPECT_EQ(serving("llama2-7b", 1, 4096).cache_bytes_per_sequence, 2147483648);
  EXPECT_EQ(serving("llama3.1-8b", 1, 1024).cache_bytes_per_token, 131072);
  Serving large = serving("llama2-70b", 8, 4096);
  EXPECT_EQ(large.cache_bytes_per_sequence, use_of(spec_of("llama2-70b"), 8, 1, 4096).cache.n);
  EXPECT_EQ(large.cache_bytes_per_token, 2 * 80 * 8 * 128 * 2);
  EXPECT_NEAR(static_cast<double>(large.weight_bytes) * 8, 2.0 * 68976648192, 2e9);
  ASSERT_FALSE(large.batches.empty());
  EXPECT_GT(large.batches.back().tokens_per_s, large.batches.front().tokens_per_s);
  // Caches fill what is left beside the program and what the driver takes, whole ones only.
  EXPECT_EQ(large.room_bytes, static_cast<int64_t>(machine.device.memory_bytes - machine.context_bytes));
  Program one = generation_of(spec_of("llama2-70b"), 8, 1, 4096);
  int64_t left = large.room_bytes - (one.arena_bytes - memory_use(one).cache.n);
  EXPECT_GT(machine.context_bytes, large.cache_bytes_per_sequence);
  EXPECT_LE(large.most_sequences * large.cache_bytes_per_sequence, left);
  EXPECT_GT((large.most_sequences + 1) * large.cache_bytes_per_sequence, left);
}

// Grouped keys are read once for all queries that share them, and a prompt sees itself only.
TEST(WorkedServing, TimesOfPromptAndCache) {
  Machine machine = load_machine("h100-sxm");
  SoftwareProfile profile = own_profile();
  auto serving = [&](int64_t context) {
    return plan_serving({.spec = spec_of("llama3.1-8b"),
                         .machine = machine,
                         .profile = profile,
                         .prompt = 1024,
                         .context = context})
        .batches.front();
  };
  ServingBatch brief = serving(8192), lengthy = serving(131072);
  // A prompt of 1024 sees itself, not the room that is kept for later.
  EXPECT_NEAR(lengthy.first_token_s / brief.first_token_s, 1, 0.02);
  // 131,072 bytes for each position, read once: four query heads share a key head.
  double more = (131072 - 8192) * 131072.0 / (machine.device.memory_bytes_per_s * machine.efficiency().memory);
  EXPECT_NEAR((lengthy.per_token_s - brief.per_token_s) / more, 1, 0.1);
}

}  // namespace
}  // namespace sextant
