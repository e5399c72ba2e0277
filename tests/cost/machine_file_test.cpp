#include "cost/machine_file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"

namespace sextant {
namespace {

constexpr std::string_view kWhole = R"toml(
name = "toy"
about = "made up"
date = "2026-11"

[fitted]
on = "two runs of 2026"
product = 0.75

[device]
name = "Toy 1"
maker = "Nobody"
units = 100
clock_mhz = 1500
flops_per_clock_and_unit = 2000
memory_gb = 64
memory_tb_s = 2.5
cache_mib = 40
watts = 333

[device.peak_tflops]
bf16 = 300
fp32 = 20.5

[node]
devices = 4

[level.node]
devices = 4
gb_s = 250
latency_us = 1.5
reduces_in_switch = true

[level.cluster]
gb_s = 12.5
latency_us = 5

[attention.flash2]
forward_64 = 0.5
forward_128 = 0.6
backward_64 = 0.4
backward_128 = 0.45

[efficiency]
product = 0.8
kernel_s = 2e-6

[run]
context_gb = 1.25
price_per_hour = 2
mtbf_hours = 40000
checkpoint_gb_s = 0.5

[products]
bf16 = [[1024, 2048, 4096, 70.5], [64, 64, 64, 3]]

[source]
device = "a letter (2026)"
)toml";

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  size_t at = text.find(what);
  EXPECT_NE(at, text.npos) << what;
  return text.replace(at, what.size(), with);
}

std::vector<Complaint> complaints_about(const std::string& text) {
  try {
    parse_machine(text, "toy.toml");
  } catch (const UserError& error) {
    return error.complaints();
  }
  return {};
}

bool mention(const std::vector<Complaint>& complaints, std::string_view place, std::string_view words) {
  return std::any_of(complaints.begin(), complaints.end(), [&](const Complaint& complaint) {
    return complaint.place.starts_with(place) && complaint.text().find(words) != std::string::npos;
  });
}

class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / ("sextant_machines_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(path_);
    ::setenv("SEXTANT_MACHINES", path_.c_str(), 1);
  }
  ~Folder() {
    ::unsetenv("SEXTANT_MACHINES");
    std::filesystem::remove_all(path_);
  }
  std::filesystem::path put(const std::string& name, std::string_view text) const {
    write_file_atomically(path_ / name, text);
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

TEST(MachineFile, FiguresArriveInBaseUnits) {
  Machine m = parse_machine(kWhole, "toy.toml");
  EXPECT_EQ(m.name, "toy");
  EXPECT_EQ(m.place, "toy.toml");
  EXPECT_EQ(m.device.maker, "Nobody");
  EXPECT_EQ(m.device.units, 100);
  EXPECT_EQ(m.device.clock_hz, 1.5e9);
  EXPECT_EQ(m.device.memory_bytes, 64e9);
  EXPECT_EQ(m.device.memory_bytes_per_s, 2.5e12);
  EXPECT_EQ(m.device.cache_bytes, 40.0 * 1024 * 1024);
  EXPECT_EQ(m.peak("bf16"), 300e12);
  EXPECT_EQ(m.peak("fp8"), 0);
  EXPECT_EQ(m.devices_per_node, 4);
  ASSERT_EQ(m.levels.size(), 2u);
  EXPECT_EQ(m.levels[0].name, "node");
  EXPECT_EQ(m.levels[0].link.bytes_per_s, 250e9);
  EXPECT_EQ(m.levels[0].link.latency_s, 1.5e-6);
  EXPECT_TRUE(m.levels[0].reduces_in_switch);
  EXPECT_EQ(m.levels[1].devices, 0);
  EXPECT_EQ(m.attention.at("flash2").backward_128, 0.45);
  EXPECT_EQ(m.context_bytes, 1.25e9);
  EXPECT_EQ(m.checkpoint_bytes_per_s, 0.5e9);
  ASSERT_EQ(m.gemms.size(), 2u);
  EXPECT_EQ(m.gemms[0].depth, 4096);
  EXPECT_EQ(m.gemms[0].seconds, 70.5e-6);
  EXPECT_EQ(m.sources.at("device"), "a letter (2026)");
}

TEST(MachineFile, GroupedGemmsAreReadByTypeAndPass) {
  std::string whole(kWhole), table =
                                 "[grouped_products.fp16]\nforward = [[8, 64, 32, 16, 2.5]]\n"
                                 "[grouped_products.bf16]\nweight_gradient = [[4, 3, 2, 1, 7], [4, 3, 2, 2, 9]]\n";
  Machine m = parse_machine(whole + table, "toy.toml");
  EXPECT_EQ(m.grouped_gemms,
            (std::vector<MeasuredGroupedGemm>{{GroupedPass::forward, 8, 64, 32, 16, 2.5e-6, "fp16"},
                                              {GroupedPass::weight_gradient, 4, 3, 2, 1, 7e-6, "bf16"},
                                              {GroupedPass::weight_gradient, 4, 3, 2, 2, 9e-6, "bf16"}}));
  EXPECT_EQ(machine_text(parse_machine(machine_text(m), "toy.toml")), machine_text(m));
  struct Bad {
    const char *table, *place, *words;
  };
  for (const Bad& bad : {Bad{"[grouped_products.fp7]\nforward = []\n", "grouped_products.fp7", "is not a known table"},
                         Bad{"[grouped_products.bf16]\nbackward = []\n", "grouped_products.bf16.backward",
                             "one of forward, input_gradient, weight_gradient"},
                         Bad{"[grouped_products.bf16]\nforward = [[1, 2, 3, 4]]\n", "grouped_products.bf16.forward",
                             "[experts, rows, columns, depth, microseconds]"}}) {
    std::vector<Complaint> all = complaints_about(whole + bad.table);
    ASSERT_EQ(all.size(), 1u) << bad.table;
    EXPECT_NE(all[0].place.find(bad.place), std::string::npos) << all[0].text();
    EXPECT_NE(all[0].text().find(bad.words), std::string::npos) << all[0].text();
  }
}

TEST(MachineFile, WhatIsNotFittedIsAsInTheTables) {
  Machine m = parse_machine(kWhole, "toy.toml");
  ASSERT_TRUE(m.fitted);
  EXPECT_EQ(m.fitted_on, "two runs of 2026");
  EXPECT_EQ(m.efficiency().product, 0.75);
  EXPECT_EQ(m.tables.product, 0.8);
  EXPECT_EQ(m.efficiency().kernel_s, 2e-6);  // from [efficiency], which stands further down
  EXPECT_EQ(m.efficiency().memory, Efficiencies{}.memory);
}

// The slowest of n devices is sqrt(2 ln n) deviations from the mean: of 4,096 as many as of 64, times the root of two.
TEST(Machine, TheSlowestOfMoreDevicesIsSlower) {
  Efficiencies efficiency{.imbalance = 1.05};
  EXPECT_EQ(slowest_of(efficiency, 1), 1);
  EXPECT_NEAR(slowest_of(efficiency, 64), 1.05, 1e-12);
  EXPECT_NEAR(slowest_of(efficiency, 4096), 1 + 0.05 * std::sqrt(2), 1e-12);
  EXPECT_NEAR(slowest_of(efficiency, 8), 1 + 0.05 * std::sqrt(0.5), 1e-12);
}

TEST(MachineFile, ModelsWithExpertsHaveAFitOfTheirOwn) {
  Machine plain = parse_machine(kWhole, "toy.toml");
  EXPECT_EQ(with_experts(plain), plain);  // none: that of all others counts
  std::string text(kWhole);
  text.insert(text.find("[device]"), "[fitted_experts]\non = \"three runs of 2026\"\nproduct = 0.7\n\n");
  Machine both = parse_machine(text, "toy.toml");
  EXPECT_EQ(both.efficiency(), plain.efficiency());
  Machine experts = with_experts(both);
  EXPECT_EQ(experts.efficiency().product, 0.7);
  EXPECT_EQ(experts.efficiency().kernel_s, 2e-6);
  EXPECT_EQ(experts.fitted_on, "three runs of 2026");
  EXPECT_EQ(parse_machine(machine_text(both), "toy.toml").fitted_experts, both.fitted_experts);
}

TEST(MachineFile, AllThatIsWrongIsSaidAtOnce) {
  std::string text = replaced(std::string(kWhole), "units = 100", "units = \"many\"");
  text = replaced(text, "watts = 333", "wats = 333");
  text = replaced(text, "product = 0.8", "product = 1.8");
  text = replaced(text, "[node]", "[knot]");
  text = replaced(text, "[64, 64, 64, 3]", "[64, 64, 64]");
  text = replaced(text, "fp32 = 20.5", "fp31 = 20.5");
  std::vector<Complaint> all = complaints_about(text);
  EXPECT_TRUE(mention(all, "toy.toml:13:1 device.units", "a whole number"));
  EXPECT_TRUE(mention(all, "toy.toml:19:1 device.wats", "[device] has name, maker, units"));
  EXPECT_TRUE(mention(all, "toy.toml:45:1 efficiency.product", "from 0.4 to 0.95"));
  EXPECT_TRUE(mention(all, "toy.toml:25:2 knot", "is not a known table"));
  EXPECT_TRUE(mention(all, "toy.toml:55:1 products.bf16", "[rows, columns, depth, microseconds]"));
  EXPECT_TRUE(mention(all, "toy.toml:23:1 device.peak_tflops.fp31", "is not a known key"));
  EXPECT_EQ(all.size(), 7u);  // and the number of units is not given
}

TEST(MachineFile, RatesOfTypesAgainstBf16) {
  std::string text =
      replaced(std::string(kWhole), "fp32 = 20.5", "fp32 = 20.5\nfp8 = 600\n\n[device.gemm_rate]\nfp8 = 0.8");
  Machine m = parse_machine(text, "toy.toml");
  EXPECT_EQ(m.gemm_rate("fp8"), 0.8);
  EXPECT_EQ(m.gemm_rate("bf16"), 1);
  EXPECT_EQ(parse_machine(machine_text(m), "toy.toml").device.gemm_rates, m.device.gemm_rates);
  EXPECT_TRUE(mention(complaints_about(replaced(text, "fp8 = 600\n", "")), "toy.toml", "device.peak_tflops.fp8"));
  EXPECT_TRUE(mention(complaints_about(replaced(text, "fp8 = 0.8", "fp8 = 8")), "toy.toml", "from 0.3 to 1.5"));
}

TEST(MachineFile, WhatIsNeededMustBeThere) {
  std::vector<Complaint> all = complaints_about("name = \"empty\"");
  for (const char* needed :
       {"device.units", "device.clock_mhz", "device.memory_gb", "device.memory_tb_s", "peak", "level"})
    EXPECT_TRUE(mention(all, "toy.toml", needed)) << needed;
  EXPECT_FALSE(complaints_about(replaced(std::string(kWhole), "gb_s = 250\n", "")).empty());
  EXPECT_FALSE(complaints_about(replaced(std::string(kWhole), "forward_64 = 0.5\n", "")).empty());
}

TEST(MachineFile, ValuesOutsideReasonAreRefused) {
  for (const char* value : {"0", "-1", "1e9", "nan", "inf", "true", "[1]", "\"1\"", "1979-05-27"})
    EXPECT_FALSE(
        complaints_about(replaced(std::string(kWhole), "clock_mhz = 1500", fmt::format("clock_mhz = {}", value)))
            .empty())
        << value;
}

// A node has what it says of its host: disks alone, or memory with the way to it.
TEST(MachineFile, DisksOfAHostStandAlone) {
  const std::string whole(kWhole);
  Machine disks = parse_machine(replaced(whole, "[level.node]", "[host]\nnvme_gb_s = 2.5\n\n[level.node]"), "toy.toml");
  EXPECT_EQ(disks.host, (HostMemory{.nvme_bytes_per_s = 2.5e9}));
  EXPECT_FALSE(disks.host.has_link());
  EXPECT_EQ(parse_machine(machine_text(disks), "toy.toml").host, disks.host);
  EXPECT_TRUE(mention(complaints_about(replaced(whole, "[level.node]", "[host]\nmemory_gb = 2\n\n[level.node]")),
                      "toy.toml", "host.link_gb_s"));
  EXPECT_TRUE(mention(complaints_about(replaced(whole, "[level.node]", "[host]\nnvme_gb = 2\n\n[level.node]")),
                      "toy.toml", "host.nvme_gb_s"));
}

// Devices of a node share its memory and its disks; where nothing is known of them, nothing is too large.
TEST(MachineFile, RanksOfANodeShareItsHost) {
  Machine machine = parse_machine(
      replaced(std::string(kWhole), "[level.node]", "[host]\nnvme_gb_s = 2.5\nnvme_gb = 8000\n\n[level.node]"),
      "toy.toml");
  ASSERT_GT(machine.devices_per_node, 2);
  EXPECT_DOUBLE_EQ(machine.nvme_bytes_of(2), 4e12);
  EXPECT_DOUBLE_EQ(machine.nvme_bytes_of(1000), 8e12 / static_cast<double>(machine.devices_per_node));
  EXPECT_EQ(machine.host_bytes_of(2), std::numeric_limits<double>::infinity());
}

TEST(MachineFile, TextAndBackIsTheSameMachine) {
  std::vector<std::string> texts{std::string(kWhole)};
  // Figures whose product with the unit is rounded.
  texts.push_back(replaced(texts[0], "gb_s = 12.5", "gb_s = 7.1428571428571432"));
  texts.push_back(replaced(texts[0], "latency_us = 1.5", "latency_us = 0.1234567890123"));
  for (const std::string& text : texts) {
    Machine m = parse_machine(text, "toy.toml");
    EXPECT_EQ(parse_machine(machine_text(m), "toy.toml"), m);
    EXPECT_EQ(machine_text(parse_machine(machine_text(m), "toy.toml")), machine_text(m));
  }
  for (const std::string& name : known_machines()) {
    Machine m = load_machine(name);
    EXPECT_EQ(parse_machine(machine_text(m), m.place), m) << name;
  }
}

TEST(MachineFile, ThoseThatComeWithTheProgramAreFoundByName) {
  std::vector<std::string> known = known_machines();
  for (const char* name :
       {"v100-sxm2",   "a100-40-sxm",  "a100-40-pcie", "a100-80-sxm",   "a800",       "h100-sxm",    "h100-pcie",
        "h100-nvl",    "h100-96-500w", "h800",         "h200",          "b200",       "gb200-nvl72", "b300",
        "gb300-nvl72", "mi250x",       "mi300x",       "mi355x",        "tpu-v4",     "tpu-v5p",     "trainium2",
        "dgx2-v100",   "dgx-a100-pod", "dgx-h100-pod", "meta-24k-roce", "fire-flyer", "cluster-100k"})
    EXPECT_TRUE(std::binary_search(known.begin(), known.end(), name)) << name;
  EXPECT_FALSE(std::binary_search(known.begin(), known.end(), "software"));
  for (const std::string& name : known) EXPECT_EQ(load_machine(name).name, name);
}

TEST(MachineFile, AnUnknownNameListsTheKnownOnes) {
  for (const char* name : {"h1000", "software", "../machines/h200", ""}) {
    try {
      load_machine(name);
      FAIL() << name;
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find("gb200-nvl72, gb300-nvl72, h100-96-500w"), std::string::npos)
          << error.what();
    }
  }
  EXPECT_THROW(load_machine("not/there.toml"), UserError);
}

TEST(MachineFile, OnesOwnFolderComesFirst) {
  Folder folder;
  folder.put("h200.toml", replaced(std::string(kWhole), "name = \"toy\"\n", ""));
  Machine own = load_machine("h200");
  EXPECT_EQ(own.device.name, "Toy 1");
  EXPECT_EQ(own.name, "h200");  // after the file
  EXPECT_EQ(load_machine("h100-sxm").device.name, "H100 SXM 80 GB");
}

TEST(MachineFile, AClusterStartsFromADevice) {
  Folder folder;
  folder.put("toy.toml", kWhole);
  std::string text = R"toml(device_from = "toy"
[level.node]
devices = 4
gb_s = 200
[level.pod]
devices = 64
gb_s = 10
[level.cluster]
gb_s = 5
[efficiency]
near_link = 0.5
[source]
level = "a map (2026)"
)toml";
  Machine toy = load_machine("toy"), cluster = load_machine(folder.put("pod.toml", text).string());
  EXPECT_EQ(cluster.name, "pod");
  EXPECT_EQ(cluster.about, "");
  EXPECT_EQ(cluster.device, toy.device);
  EXPECT_EQ(cluster.attention, toy.attention);
  EXPECT_EQ(cluster.devices_per_node, 4);
  ASSERT_EQ(cluster.levels.size(), 3u);
  EXPECT_EQ(cluster.levels[1].name, "pod");
  EXPECT_EQ(cluster.levels[0].link.bytes_per_s, 200e9);
  EXPECT_EQ(cluster.levels[0].link.latency_s, 0);  // nothing of the device's own levels is left
  EXPECT_EQ(cluster.tables.near_link, 0.5);
  EXPECT_EQ(cluster.fitted->near_link, 0.5);
  EXPECT_EQ(cluster.fitted->product, 0.75);
  EXPECT_EQ(cluster.sources.at("device"), "a letter (2026)");

  EXPECT_TRUE(mention(complaints_about("device_from = \"pod\""), "", "without device_from"));
  EXPECT_TRUE(mention(complaints_about("device_from = \"nowhere\""), "toy.toml:1:1 device_from", "there are"));
  EXPECT_FALSE(complaints_about("device_from = 7").empty());
}

// The peaks that others computed from clocks and tensor cores: 2 x 512 flops for each of 4 cores of an H100's unit, and
// so on.
TEST(MachineFile, PeaksAgreeWithIndependentArithmetic) {
  auto made = [](const char* name) {
    Device device = load_machine(name).device;
    return device.clock_hz * static_cast<double>(device.units) * device.flops_per_clock_and_unit / 1e12;
  };
  EXPECT_NEAR(made("h100-sxm"), 1830e6 * 512 * 2 * 528 / 1e12, 0.01);
  EXPECT_NEAR(made("h100-sxm"), 989.43, 0.01);
  EXPECT_NEAR(made("a100-80-sxm"), 311.87, 0.01);
  EXPECT_NEAR(made("mi300x"), 1307.44, 0.01);
  EXPECT_NEAR(made("mi355x"), 2516.58, 0.01);
  EXPECT_NEAR(made("tpu-v4"), 275, 0.5);
  EXPECT_NEAR(made("v100-sxm2"), 125, 0.5);
}

// Adapters of a node, in Gb/s, over its devices.
TEST(MachineFile, NetworksAgreeWithAdaptersPerNode) {
  auto far = [](const char* name) { return load_machine(name).levels.back().link.bytes_per_s; };
  EXPECT_DOUBLE_EQ(far("a100-80-sxm"), 8 * 200e9 / 8 / 8);
  EXPECT_DOUBLE_EQ(far("h100-sxm"), 8 * 400e9 / 8 / 8);
  EXPECT_DOUBLE_EQ(far("b300"), 8 * 800e9 / 8 / 8);
  EXPECT_DOUBLE_EQ(far("v100-sxm2"), 4 * 100e9 / 8 / 8);
  EXPECT_DOUBLE_EQ(far("dgx2-v100"), 8 * 100e9 / 8 / 16);
  EXPECT_DOUBLE_EQ(far("fire-flyer"), 1 * 200e9 / 8 / 8);
  EXPECT_NEAR(far("meta-24k-roce"), 400e9 / 8 / 7, 1e7);
}

}  // namespace
}  // namespace sextant
