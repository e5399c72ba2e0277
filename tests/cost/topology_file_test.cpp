// Topologies in machine files: which keys each has, and what contradicts.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "cost/machine_file.h"

namespace sextant {
namespace {

// A device, then levels; the first line of `cluster` is line 19.
std::string machine_with(std::string_view cluster) {
  constexpr std::string_view kBefore = R"toml(name = "toy"

[device]
units = 100
clock_mhz = 1500
flops_per_clock_and_unit = 2000
memory_gb = 64
memory_tb_s = 2.5

[device.peak_tflops]
bf16 = 300

[level.node]
devices = 4
gb_s = 250

[level.cluster]
gb_s = 12
)toml";
  return std::string(kBefore) + std::string(cluster);
}

Topology cluster_of(std::string_view text) {
  Machine machine = parse_machine(machine_with(text), "toy.toml");
  EXPECT_EQ(parse_machine(machine_text(machine), "toy.toml"), machine) << text;
  return machine.levels.back().topology;
}

TEST(TopologyFile, EachTopologyHasItsKeys) {
  EXPECT_EQ(cluster_of(""), Topology(SwitchedLinks{}));
  EXPECT_EQ(cluster_of("topology = \"switch\"\n"), Topology(SwitchedLinks{}));
  // In any order.
  EXPECT_EQ(cluster_of("oversubscription = 2.5\ntopology = \"fat-tree\"\nleaf_devices = 16\n"),
            Topology(FatTree{16, 2.5}));
  EXPECT_EQ(cluster_of("topology = \"rail\"\n"), Topology(RailOptimised{}));
  EXPECT_EQ(cluster_of("topology = \"rail\"\nleaf_devices = 32\noversubscription = 3\npxn = false\n"),
            Topology(RailOptimised{32, 3, false}));
  EXPECT_EQ(cluster_of("topology = \"dragonfly\"\ngroup_devices = 16\ngroups = 5\nglobal_gb_s = 6\n"
                       "adaptive_routing = true\n"),
            Topology(Dragonfly{16, 5, 6e9, true}));
  EXPECT_EQ(cluster_of("topology = \"torus\"\nshape = [4, 6]\n"), Topology(Torus{{4, 6}}));
}

TEST(TopologyFile, WhatDoesNotFitIsRefusedWithItsLine) {
  struct Bad {
    const char *cluster, *place, *words;
  };
  for (const Bad& bad : {
           Bad{"topology = \"star\"\n", "toy.toml:19:1 level.cluster.topology",
               "one of switch, fat-tree, rail, dragonfly, torus"},
           Bad{"topology = 3\n", "toy.toml:19:1 level.cluster.topology", "one of switch"},
           Bad{"oversubscription = 2\n", "toy.toml:19:1 level.cluster.oversubscription",
               "[level.cluster] has devices, gb_s, latency_us, reduces_in_switch, topology"},
           Bad{"topology = \"torus\"\nshape = [4, 4]\nleaf_devices = 8\n", "toy.toml:21:1 level.cluster.leaf_devices",
               "is not a known key"},
           Bad{"topology = \"fat-tree\"\n", "toy.toml:19:1 level.cluster.topology", "leaf_devices is not given"},
           Bad{"topology = \"fat-tree\"\nleaf_devices = 6\n", "toy.toml:20:1 level.cluster.leaf_devices",
               "a multiple of the 4 devices of one unit"},
           Bad{"topology = \"fat-tree\"\nleaf_devices = 8\noversubscription = 0.5\n",
               "toy.toml:21:1 level.cluster.oversubscription", "from 1 to 1000"},
           Bad{"topology = \"rail\"\nleaf_devices = 6\n", "toy.toml:20:1 level.cluster.leaf_devices", "a multiple"},
           Bad{"topology = \"dragonfly\"\ngroups = 5\nglobal_gb_s = 6\n", "toy.toml:19:1 level.cluster.topology",
               "group_devices is not given"},
           Bad{"topology = \"dragonfly\"\ngroup_devices = 8\nglobal_gb_s = 6\n", "toy.toml:19:1 level.cluster.topology",
               "groups is not given"},
           Bad{"topology = \"dragonfly\"\ngroup_devices = 8\ngroups = 5\n", "toy.toml:19:1 level.cluster.topology",
               "global_gb_s is not given"},
           Bad{"topology = \"dragonfly\"\ndevices = 64\ngroup_devices = 8\ngroups = 5\nglobal_gb_s = 6\n",
               "toy.toml:22:1 level.cluster.groups", "the 64 devices of the level"},
           Bad{"topology = \"torus\"\n", "toy.toml:19:1 level.cluster.topology", "shape is not given"},
           Bad{"topology = \"torus\"\nshape = [4, 1]\n", "toy.toml:20:1 level.cluster.shape", "from 2 to"},
           Bad{"topology = \"torus\"\nshape = []\n", "toy.toml:20:1 level.cluster.shape", "a list of whole numbers"},
           Bad{"topology = \"torus\"\ndevices = 64\nshape = [4, 6]\n", "toy.toml:21:1 level.cluster.shape",
               "16 places, for 64 devices"},
           Bad{"topology = \"torus\"\nshape = [1000000, 1000000, 1000000]\n", "toy.toml:20:1 level.cluster.shape",
               "at most"},
       }) {
    std::vector<Complaint> all;
    try {
      parse_machine(machine_with(bad.cluster), "toy.toml");
    } catch (const UserError& error) {
      all = error.complaints();
    }
    bool said = std::ranges::any_of(all, [&](const Complaint& complaint) {
      return complaint.place == bad.place && complaint.text().find(bad.words) != std::string::npos;
    });
    EXPECT_TRUE(said) << bad.cluster << (all.empty() ? "" : all.front().text());
  }
}

TEST(TopologyFile, RailsAreBetweenNodes) {
  std::string text = machine_with("");
  text.replace(text.find("[level.node]"), 12, "[level.node]\ntopology = \"rail\"");
  try {
    parse_machine(text, "toy.toml");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_EQ(error.complaints().front().place, "toy.toml:14:1 level.node.topology");
  }
}

}  // namespace
}  // namespace sextant
