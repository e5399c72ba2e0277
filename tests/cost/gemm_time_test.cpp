// The time of GEMMs: waves of tiles, odd sizes, bytes; and measured ones where the machine has them.
#include "cost/gemm_time.h"

#include <gtest/gtest.h>

namespace sextant {
namespace {

Machine plain() {
  Machine machine;
  machine.device = {.units = 100, .peaks = {{"bf16", 1e15}}, .memory_bytes_per_s = 3e12};
  machine.tables = {.product = 0.8, .memory = 1};
  return machine;
}

double seconds(const Machine& machine, Gemm gemm) {
  return gemm_seconds(machine, machine.tables, {.gemm = gemm});
}

TEST(GemmSeconds, LargeOnesReachTheShareOfThePeak) {
  Machine machine = plain();
  Gemm large{.rows = 25600, .columns = 12800, .depth = 16384};  // 100 by 100 tiles
  EXPECT_NEAR(large.flops() / seconds(machine, large), 0.8e15, 0.01e15);
  EXPECT_LT(large.flops() / seconds(machine, large), 0.8e15);
}

// A type whose GEMMs reach three quarters of what those of bf16 reach of their peak.
TEST(GemmSeconds, TypesReachSharesOfTheirOwn) {
  Machine machine = plain();
  machine.device.peaks["fp8"] = 2e15, machine.device.gemm_rates["fp8"] = 0.75;
  Gemm large{.rows = 25600, .columns = 12800, .depth = 16384};
  double narrow = gemm_seconds(machine, machine.tables, {.gemm = large, .operand_bytes = 1, .dtype = "fp8"});
  EXPECT_NEAR(seconds(machine, large) / narrow, 2 * 0.75, 1e-9);
}

// One tile more than the units can take at once costs a whole wave, unless smaller tiles fit better.
TEST(GemmSeconds, AWaveIsDealtWhole) {
  Machine machine = plain();
  double full = seconds(machine, {.rows = 2560, .columns = 1280, .depth = 8192});
  double more = seconds(machine, {.rows = 2560, .columns = 1280 + 128, .depth = 8192});
  EXPECT_GT(more, 1.15 * full);
  EXPECT_LE(seconds(machine, {.rows = 2560, .columns = 1280 - 128, .depth = 8192}), full);
}

// 16 tiles of 64 by 64 for 128 units: with the depth in four parts each tile is done in 352 steps, and the four parts
// are written, read and added in f32. In eight parts the sum would take longer than it saves.
TEST(GemmSeconds, SplitDepthPaysForItsSum) {
  Machine machine;
  machine.device = {.units = 128, .peaks = {{"bf16", 128e6}}, .memory_bytes_per_s = 1e6};
  machine.tables = {.product = 1, .memory = 1};
  double tiles = 2.0 * 64 * 64 * (256 + 96) / (0.7 * 1e6), sum = 3.0 * 4 * 256 * 256 * 4 / 1e6;
  EXPECT_NEAR(seconds(machine, {.rows = 256, .columns = 256, .depth = 1024}), tiles + sum, 1e-9);
}

TEST(GemmSeconds, OddSizesAreSlow) {
  Machine machine = plain();
  double even = seconds(machine, {.rows = 8192, .columns = 50304, .depth = 4096});
  EXPECT_GT(seconds(machine, {.rows = 8192, .columns = 50257, .depth = 4096}), 1.5 * even);
  EXPECT_GT(alignment_rate(3456), alignment_rate(3600));
}

TEST(GemmSeconds, ThinOnesWaitForMemory) {
  Machine machine = plain();
  Gemm thin{.rows = 1, .columns = 16384, .depth = 16384};
  EXPECT_NEAR(seconds(machine, thin), 2.0 * 16384 * 16384 / 3e12, 1e-5);
}

TEST(GemmSeconds, MeasuredGemmsDecideNearTheirShape) {
  Machine machine = plain();
  Gemm shape{.rows = 4096, .columns = 4096, .depth = 4096};
  double modelled = seconds(machine, shape);
  machine.gemms = {{.rows = 4096, .columns = 4096, .depth = 4096, .seconds = 3 * modelled}};
  EXPECT_NEAR(seconds(machine, shape), 3 * modelled, 1e-9);
  machine.gemms.push_back({.rows = 64, .columns = 64, .depth = 64, .seconds = 1});
  EXPECT_NEAR(seconds(machine, shape), 3 * modelled, 0.05 * modelled);
}

// Kernels differ by pass; without a measured one of that pass and type, grouped GEMMs are as single ones.
TEST(GemmSeconds, MeasuredGroupedGemmsDecideInTheirPass) {
  using enum GroupedPass;
  Machine machine = plain();
  Gemm shape{.rows = 512, .columns = 2048, .depth = 1024, .count = 64};
  auto grouped = [&](GroupedPass pass, const char* dtype = "bf16") {
    return grouped_gemm_seconds(machine, machine.tables, {.gemm = shape, .dtype = dtype}, pass);
  };
  machine.device.peaks["fp16"] = 1e15;
  double modelled = seconds(machine, shape);
  EXPECT_EQ(grouped(forward), modelled);
  machine.grouped_gemms = {{forward, 64, 512, 2048, 1024, 2 * modelled, "bf16"},
                           {forward, 8, 16, 256, 256, 1, "bf16"},
                           {weight_gradient, 64, 512, 2048, 1024, 3 * modelled, "bf16"}};
  EXPECT_NEAR(grouped(forward), 2 * modelled, 0.05 * modelled);
  EXPECT_NEAR(grouped(weight_gradient), 3 * modelled, 1e-9);
  EXPECT_EQ(grouped(input_gradient), modelled);
  EXPECT_EQ(grouped(forward, "fp16"), modelled);
  EXPECT_EQ(seconds(machine, shape), modelled);
}

}  // namespace
}  // namespace sextant
