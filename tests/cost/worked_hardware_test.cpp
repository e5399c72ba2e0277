// Worked cases of hardware and network arithmetic: A4, A5, A7 and A11 of the list of calculators' cases. (A6 is in
// machine_file_test.cpp, A8 to A10 in the tests of bench.)
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "cost/collective.h"
#include "cost/gemm_time.h"
#include "cost/machine_file.h"

namespace sextant {
namespace {

// Nodes of eight with perfect links; `bus` is what each rank of a group over all of them can send.
Machine cluster(double near, double bus) {
  Machine machine;
  machine.levels = {{.name = "node", .devices = 8, .link = {near, 0}},
                    {.name = "cluster", .devices = 0, .link = {bus / 8, 0}}};
  machine.tables = {.near_link = 1, .far_link = 1};
  return machine;
}

double seconds(const Machine& machine, Collective kind, double bytes, int ranks) {
  std::vector<int> group(static_cast<size_t>(ranks));
  std::iota(group.begin(), group.end(), 0);
  return collective_seconds(machine, machine.tables, kind, bytes, place_group(machine, group));
}

// A4: IDEFICS-80B on 512 devices with ZeRO-3: weights gathered twice, gradients scattered once, all in bf16, at 42.5
// GB/s.
TEST(WorkedHardware, ZeroThreeOfIdefics) {
  Machine machine = cluster(300e9, 42.5e9);
  double bytes = 2 * 80e9;
  double ours = 2 * seconds(machine, Collective::all_gather, bytes, 512) +
                seconds(machine, Collective::reduce_scatter, bytes, 512);
  EXPECT_NEAR(ours, 11.294,
              0.01 * 11.294);  // a rank sends 511 parts of 512, and the ring has its latency: neither is counted there
}

// A5: gradients of 2 B parameters in f32, all-reduced. "16 GB" are both ways of a long ring.
TEST(WorkedHardware, DataParallelismOfTwoBillion) {
  EXPECT_NEAR(seconds(cluster(300e9, 300e9), Collective::all_reduce, 8e9, 64), 0.0533 * 63 / 64, 0.02 * 0.0533);
  EXPECT_NEAR(seconds(cluster(300e9, 200e9 / 8), Collective::all_reduce, 8e9, 64), 0.64 * 63 / 64, 0.02 * 0.64);
  // Inside a node of eight the ring is short: seven eighths of it.
  EXPECT_NEAR(seconds(cluster(300e9, 300e9), Collective::all_reduce, 8e9, 8), 0.0533 * 7 / 8, 0.02 * 0.0533);
}

// A7: 3996 MHz twice a clock over 1024 bytes; what is published is rounded down.
TEST(WorkedHardware, MemoryOfAB200) {
  double clocked = 3996e6 * 2 * 1024;
  EXPECT_NEAR(clocked / 1e12, 8.1838, 1e-4);
  double published = load_machine("b200").device.memory_bytes_per_s;
  EXPECT_LE(published, clocked);
  EXPECT_GT(published, 0.97 * clocked);
}

// A11: tiles in waves, 148 units against 152. The rule has one size of tile; a library takes smaller ones where they
// fill the last wave better, so that the gain is never more than the rule's.
TEST(WorkedHardware, WavesOf148And152Units) {
  auto seconds_with = [](int64_t units, double tiles) {
    Machine machine;
    machine.device = {
        .units = units, .peaks = {{"bf16", 2250e12 / 148 * static_cast<double>(units)}}, .memory_bytes_per_s = 8e12};
    machine.tables = {.product = 1, .memory = 1};
    return gemm_seconds(machine, machine.tables,
                        {.gemm = {.rows = 256 * tiles / 4, .columns = 4 * 128, .depth = 8192}});
  };
  struct Case {
    double tiles, gain;
  };
  for (const Case& c : {Case{148, 1.000}, Case{152, 2.000}, Case{296, 1.000}, Case{304, 1.500}, Case{3584, 1.042},
                        Case{50000, 1.027}}) {
    EXPECT_NEAR(std::ceil(c.tiles / 148) / std::ceil(c.tiles / 152), c.gain, 0.0006) << c.tiles;
    double ours = seconds_with(148, c.tiles) / seconds_with(152, c.tiles);
    EXPECT_LE(ours, c.gain + 0.0006) << c.tiles;
    EXPECT_GE(ours, 1 - 1e-9) << c.tiles;
    bool fits_both = c.gain == 1, many_waves = c.tiles > 1e4;
    if (fits_both || many_waves) {
      EXPECT_NEAR(ours, c.gain, 0.001) << c.tiles;
    }
    if (c.tiles == 152) {
      EXPECT_GT(ours, 1.2);  // four tiles more than units are felt, whatever the tile
    }
  }
}

}  // namespace
}  // namespace sextant
