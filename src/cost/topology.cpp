#include "cost/topology.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "cost/torus_traffic.h"

namespace sextant {

namespace {

constexpr int64_t kMostTorusUnits = 100'000'000;

template <class... F>
struct ByTopology : F... {
  using F::operator()...;
};
template <class... F>
ByTopology(F...) -> ByTopology<F...>;

// A group as the switches see it.
struct GroupSpread {
  double members = 0;
  double in_unit = 0;   // of the first one's unit
  double in_block = 0;  // of the first one's block of devices below one switch, or in one group of a dragonfly
  double blocks = 0;    // with members
  int64_t offset = 0;   // from the first to the second
};

GroupSpread group_spread(const std::vector<int64_t>& devices, int64_t unit, int64_t block) {
  GroupSpread spread{.members = static_cast<double>(devices.size()), .offset = devices[1] - devices[0]};
  int64_t last = -1;
  for (int64_t device : devices) {
    spread.in_unit += device / unit == devices[0] / unit ? 1 : 0;
    spread.in_block += device / block == devices[0] / block ? 1 : 0;
    spread.blocks += device / block != last ? 1 : 0;
    last = device / block;
  }
  return spread;
}

double outside_of(const GroupSpread& spread, double inside) {
  return spread.members - inside;
}

// Leaves of `leaf` devices that lie next to each other. Rings leave a leaf once for each group in it.
TrafficShares leaf_traffic(const GroupSpread& spread, double leaf, double oversubscription) {
  TrafficShares shares;
  double offset = static_cast<double>(spread.offset);
  shares.message = std::min(1.0, leaf / (oversubscription * std::min(offset, leaf)));
  if (spread.blocks < 2) return shares;
  shares.ring = std::min(1.0, spread.in_block / (spread.in_unit * oversubscription));
  shares.exchange =
      std::min(1.0, outside_of(spread, spread.in_unit) / (outside_of(spread, spread.in_block) * oversubscription));
  return shares;
}

TrafficShares shares_of(const FatTree& tree, const LevelExtent& level, const std::vector<int64_t>& devices) {
  return leaf_traffic(group_spread(devices, level.unit_devices, tree.leaf_devices),
                      static_cast<double>(tree.leaf_devices), tree.oversubscription);
}

// Whether members have the same places in every unit, so that rings enter and leave on one rail.
bool keeps_rails(const std::vector<int64_t>& devices, int64_t unit) {
  std::set<int64_t> rails;
  std::set<std::pair<int64_t, int64_t>> used;
  std::set<int64_t> units;
  for (int64_t device : devices) {
    rails.insert(device % unit);
    units.insert(device / unit);
    used.emplace(device / unit, device % unit);
  }
  return used.size() == rails.size() * units.size();
}

// Within the nodes of a leaf what stays on its rail takes no link to the spine.
TrafficShares shares_of(const RailOptimised& rail, const LevelExtent& level, const std::vector<int64_t>& devices) {
  int64_t unit = level.unit_devices;
  int64_t leaf = rail.leaf_devices > 0 ? rail.leaf_devices : devices.back() + 1;
  GroupSpread spread = group_spread(devices, unit, leaf);
  TrafficShares shares = leaf_traffic(spread, static_cast<double>(leaf), rail.oversubscription);
  if (rail.leaf_devices == 0) shares.message = 1;
  if (rail.pxn) return shares;
  if (!keeps_rails(devices, unit)) shares.ring = std::min(shares.ring, 1 / rail.oversubscription);
  if (spread.offset % unit != 0) {  // all that leave their node change rails
    double leaving = static_cast<double>(std::min(spread.offset, unit)) / static_cast<double>(unit);
    shares.message = std::min(shares.message, 1 / (rail.oversubscription * leaving));
  }
  auto on_rail = static_cast<double>(std::ranges::count_if(devices, [&](int64_t device) {
    return device % unit == devices[0] % unit && device / leaf == devices[0] / leaf;
  }));
  double beyond = spread.members - spread.in_unit, to_spine = beyond - (on_rail - 1);
  if (to_spine > 0) shares.exchange = std::min(1.0, beyond / (to_spine * rail.oversubscription));
  return shares;
}

// Of what a group sends to each of `partners` other groups, what the busiest bundle carries. With a share x on the
// bundle between the two and the rest over third groups, links to partners carry x more than the others, and all carry
// the same at x = 2 / groups; where a group has more partners than half of them, going straight is better.
double busiest_bundle(const Dragonfly& fly, double partners) {
  bool straight = !fly.adaptive_routing || fly.groups < 3;
  return straight ? 1 : std::min(1.0, 2 * partners / static_cast<double>(fly.groups));
}

TrafficShares shares_of(const Dragonfly& fly, const LevelExtent& level, const std::vector<int64_t>& devices) {
  GroupSpread spread = group_spread(devices, level.unit_devices, fly.group_devices);
  double bundle = fly.global_bytes_per_s / static_cast<double>(fly.groups - 1);  // for each device of a group
  double rate = level.bytes_per_s, at_once = static_cast<double>(fly.group_devices);
  TrafficShares shares;
  int64_t past = spread.offset % fly.group_devices;
  double crossing =
      static_cast<double>(spread.offset < fly.group_devices ? spread.offset : std::max(past, fly.group_devices - past));
  double partners = spread.offset < fly.group_devices || past == 0 ? 1 : 2;
  shares.message = std::min(1.0, bundle * at_once / (crossing * busiest_bundle(fly, partners) * rate));
  if (spread.blocks < 2) return shares;
  shares.ring = std::min(1.0, spread.in_block * bundle / (spread.in_unit * busiest_bundle(fly, 1) * rate));
  double to_each = spread.in_block * busiest_bundle(fly, spread.blocks - 1);
  shares.exchange = std::min(1.0, outside_of(spread, spread.in_unit) * bundle / (to_each * rate));
  return shares;
}

std::optional<TopologyProblem> leaf_problem(int64_t leaf, const LevelExtent& level) {
  if (leaf > 0 && leaf % level.unit_devices == 0 && (level.devices == 0 || level.devices % leaf == 0))
    return std::nullopt;
  std::string whole = level.devices > 0 ? fmt::format(" and a divisor of its {} devices", level.devices) : "";
  return TopologyProblem{"leaf_devices", leaf == 0 ? "is not given" : fmt::format("got {}", leaf),
                         fmt::format("a multiple of the {} devices of one unit{}", level.unit_devices, whole)};
}

}  // namespace

Topology topology_of_kind(size_t kind) {
  static const std::array<Topology, kTopologies.size()> kinds{SwitchedLinks{}, FatTree{}, RailOptimised{}, Dragonfly{},
                                                              Torus{}};
  return kinds.at(kind);
}

std::string topology_text(const Topology& topology) {
  auto leaves = [](int64_t devices, double oversubscription) {
    std::string size = devices > 0 ? fmt::format("{} devices at a leaf, ", devices) : "";
    return fmt::format("{}{:g}:1", size, oversubscription);
  };
  return std::visit(
      ByTopology{[](const SwitchedLinks&) { return std::string("switch"); },
                 [&](const FatTree& t) { return "fat tree, " + leaves(t.leaf_devices, t.oversubscription); },
                 [&](const RailOptimised& t) {
                   return fmt::format("rails, {}{}", leaves(t.leaf_devices, t.oversubscription),
                                      t.pxn ? "" : ", without PXN");
                 },
                 [](const Dragonfly& t) {
                   return fmt::format("dragonfly, {} groups of {}, {:.4g} GB/s out of them for a device, {} routing",
                                      t.groups, t.group_devices, t.global_bytes_per_s / 1e9,
                                      t.adaptive_routing ? "adaptive" : "minimal");
                 },
                 [](const Torus& t) { return fmt::format("torus, {}", fmt::join(t.shape, " x ")); }},
      topology);
}

std::optional<TopologyProblem> problem_of(const Topology& topology, const LevelExtent& level) {
  using Problem = std::optional<TopologyProblem>;
  return std::visit(
      ByTopology{[](const SwitchedLinks&) { return Problem(); },
                 [&](const FatTree& t) { return leaf_problem(t.leaf_devices, level); },
                 [&](const RailOptimised& t) {
                   if (level.innermost)
                     return Problem({"topology", "rails are between nodes, and this is the innermost level",
                                     "a level inside it, [level.node]"});
                   return t.leaf_devices > 0 ? leaf_problem(t.leaf_devices, level) : Problem();
                 },
                 [&](const Dragonfly& t) {
                   if (t.group_devices == 0 || t.group_devices % level.unit_devices != 0)
                     return Problem({"group_devices",
                                     t.group_devices == 0 ? "is not given" : fmt::format("got {}", t.group_devices),
                                     fmt::format("a multiple of the {} devices of one unit", level.unit_devices)});
                   if (t.groups < 2) return Problem({"groups", "is not given", "a whole number from 2"});
                   if (level.devices > 0 && t.group_devices * t.groups != level.devices)
                     return Problem({"groups", fmt::format("{} groups of {}", t.groups, t.group_devices),
                                     fmt::format("the {} devices of the level", level.devices)});
                   if (!(t.global_bytes_per_s > 0)) return Problem({"global_gb_s", "is not given", "a number above 0"});
                   return Problem();
                 },
                 [&](const Torus& t) {
                   int64_t units = 1;
                   for (int64_t size : t.shape) units = units > kMostTorusUnits ? units : units * size;
                   if (t.shape.empty()) return Problem({"shape", "is not given", "a list such as [16, 16, 16]"});
                   int64_t most = level.devices > 0 ? level.devices / level.unit_devices : kMostTorusUnits;
                   if (units > most || (level.devices > 0 && units != most))
                     return Problem({"shape", fmt::format("{} has {} places", fmt::join(t.shape, " x "), units),
                                     level.devices > 0 ? fmt::format("{} places, for {} devices", most, level.devices)
                                                       : fmt::format("at most {} places", most)});
                   return Problem();
                 }},
      topology);
}

TrafficShares traffic_shares(const Topology& topology, const LevelExtent& level, const std::vector<int64_t>& devices) {
  if (devices.empty() || devices.front() / level.unit_devices == devices.back() / level.unit_devices) return {};
  return std::visit(ByTopology{[](const SwitchedLinks&) { return TrafficShares(); },
                               [&](const Torus& torus) { return torus_traffic(torus, level.unit_devices, devices); },
                               [&](const auto& switches) { return shares_of(switches, level, devices); }},
                    topology);
}

}  // namespace sextant
