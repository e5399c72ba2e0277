// How the units of a level are linked to each other: nodes by switches, devices by the links of a torus. A level's
// gb_s is what a device sends when nothing but its own links limits it; the topology says what is left of that for
// messages between certain devices, when all other groups of the run send alike at the same time.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace sextant {

// Every device reaches any other at its full rate.
struct SwitchedLinks {
  bool operator==(const SwitchedLinks&) const = default;
};

// Leaf switches below a spine. Each leaf has `oversubscription` times the bandwidth to its devices as to the spine.
struct FatTree {
  int64_t leaf_devices = 0;
  double oversubscription = 1;
  bool operator==(const FatTree&) const = default;
};

// Device i of every node hangs on leaf switch i, which serves the nodes of `leaf_devices` devices; 0: all nodes.
struct RailOptimised {
  int64_t leaf_devices = 0;
  double oversubscription = 1;  // of a leaf towards the spine
  bool pxn = true;  // messages to another rail go over the node's own links to a device on that rail first (NCCL's PXN)
  bool operator==(const RailOptimised&) const = default;
};

// Groups of devices with full rate inside, and a bundle of links between any two groups.
struct Dragonfly {
  int64_t group_devices = 0;
  int64_t groups = 0;
  double global_bytes_per_s = 0;  // one way, of all links that leave a group, divided by its devices
  bool adaptive_routing =
      false;  // also over third groups, as far as that is faster; else on the one bundle between two
  bool operator==(const Dragonfly&) const = default;
};

// Units in a grid whose axes are rings: the first axis has neighbouring units. gb_s are all links of a device together,
// two along each axis.
struct Torus {
  std::vector<int64_t> shape;
  bool operator==(const Torus&) const = default;
};

using Topology = std::variant<SwitchedLinks, FatTree, RailOptimised, Dragonfly, Torus>;
// In files, in the order of the alternatives.
constexpr std::array<std::string_view, 5> kTopologies{"switch", "fat-tree", "rail", "dragonfly", "torus"};
static_assert(kTopologies.size() == std::variant_size_v<Topology>);

Topology topology_of_kind(size_t kind);  // the place among kTopologies; nothing of it is set

// "fat-tree, 256 devices at a leaf, 2:1": for reports.
std::string topology_text(const Topology& topology);

// The level a topology belongs to.
struct LevelExtent {
  int64_t unit_devices = 1;  // in one unit of the level inside it
  int64_t devices = 0;       // in all; 0: no limit
  bool innermost = true;
  double bytes_per_s = 0;  // of a device's own links
};

struct TopologyProblem {
  std::string key, got, expected;
};
// The first key that is missing or contradicts the level.
std::optional<TopologyProblem> problem_of(const Topology& topology, const LevelExtent& level);

// Share of a device's own rate that the busiest link allows, at most 1.
struct TrafficShares {
  double ring = 1;      // each unit to the next one of the group: all-reduce, all-gather, reduce-scatter, broadcast
  double exchange = 1;  // all to all
  double message = 1;   // each to the one that is as far away as the second of the group is from the first
  bool operator==(const TrafficShares&) const = default;
};

// `devices` of the group that are inside one unit of this level, ascending. All devices of the machine are taken to be
// in groups that lie like it.
TrafficShares traffic_shares(const Topology& topology, const LevelExtent& level, const std::vector<int64_t>& devices);

}  // namespace sextant
