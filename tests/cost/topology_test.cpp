// Bandwidth that topologies leave for collectives: closed forms against networks whose every link is counted.
#include "cost/topology.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "cost/collective.h"
#include "cost/small_network.h"

namespace sextant {
namespace {

constexpr double kFar = 10, kBytes = 1;

// Nodes of `unit` devices whose links have no limit, on a network of the topology.
Machine on_topology(Topology topology, int64_t unit, double rate = kFar) {
  Machine machine;
  machine.tables = {.near_link = 1, .far_link = 1};
  if (unit > 1) machine.levels.push_back({.name = "node", .devices = unit, .link = {1e15, 0}});
  machine.levels.push_back({.name = "cluster", .devices = 0, .link = {rate, 0}, .topology = std::move(topology)});
  return machine;
}

struct Lies {
  int64_t count, stride;
};

std::vector<int> members(const Lies& lies) {
  std::vector<int> ranks;
  for (int64_t i = 0; i < lies.count; ++i) ranks.push_back(static_cast<int>(i * lies.stride));
  return ranks;
}

// Of a gather of kBytes: each rank passes on (n - 1) / n of them.
double ring_seconds(const Machine& machine, const Lies& lies) {
  double n = static_cast<double>(lies.count);
  return kBytes * (n - 1) / n / group_bandwidth(machine, machine.tables, place_group(machine, members(lies)));
}

// The part that bytes take, without what starting a message does.
double beyond_start(const Machine& machine, Collective kind, const std::vector<int>& ranks) {
  GroupPlace place = place_group(machine, ranks);
  double large = 1e9, nearly_nothing = 1e-9;
  double all = collective_seconds(machine, machine.tables, kind, large, place);
  return (all - collective_seconds(machine, machine.tables, kind, nearly_nothing, place)) / large;
}

// In rank order; as many rings as members in a node, so that each enters and leaves by an adapter of its own.
void send_rings(SmallNetwork& network, const std::vector<std::vector<int64_t>>& groups, int64_t unit) {
  for (const std::vector<int64_t>& group : groups) {
    std::vector<std::vector<int64_t>> nodes;
    for (int64_t device : group) {
      if (nodes.empty() || nodes.back().front() / unit != device / unit) nodes.emplace_back();
      nodes.back().push_back(device);
    }
    if (nodes.size() < 2) continue;
    double n = static_cast<double>(group.size());
    for (size_t node = 0; node < nodes.size(); ++node) {
      const auto &from = nodes[node], &to = nodes[(node + 1) % nodes.size()];
      for (size_t ring = 0; ring < from.size(); ++ring)
        network.send(from[ring], to[ring % to.size()], kBytes * (n - 1) / n / static_cast<double>(from.size()));
    }
  }
}

void send_to_all(SmallNetwork& network, const std::vector<std::vector<int64_t>>& groups) {
  for (const std::vector<int64_t>& group : groups)
    for (int64_t from : group)
      for (int64_t to : group)
        if (from != to) network.send(from, to, kBytes / static_cast<double>(group.size()));
}

struct NetworkCase {
  std::string name;
  Machine machine;
  int64_t devices, unit;
  std::function<SmallNetwork()> network;
};

void expect_as_counted(const NetworkCase& c, const std::vector<Lies>& groups) {
  for (const Lies& lies : groups) {
    auto all = strided_groups(c.devices, lies.count, lies.stride);
    std::string what = fmt::format("{}: {} devices, {} apart", c.name, lies.count, lies.stride);
    SmallNetwork rings = c.network(), exchange = c.network();
    send_rings(rings, all, c.unit);
    EXPECT_NEAR(ring_seconds(c.machine, lies) / rings.seconds(), 1, 1e-9) << what;
    send_to_all(exchange, all);
    EXPECT_NEAR(beyond_start(c.machine, Collective::all_to_all, members(lies)) / exchange.seconds(), 1, 1e-6) << what;
    if (lies.stride < c.unit) continue;
    SmallNetwork messages = c.network();
    for (int64_t device = 0; device + lies.stride < c.devices; ++device)
      messages.send(device, device + lies.stride, kBytes);
    double seconds = beyond_start(c.machine, Collective::send, {0, static_cast<int>(lies.stride)});
    EXPECT_NEAR(seconds / messages.seconds(), 1, 1e-6) << what;
  }
}

// 64 devices in nodes of 4, leaves of 16 with half of their bandwidth upwards: links out of and into each device and
// leaf.
NetworkCase fat_tree_case(int64_t devices, int64_t unit, FatTree tree) {
  auto network = [=] {
    std::map<std::string, double> links;
    for (int64_t d = 0; d < devices; ++d) links[fmt::format("out {}", d)] = links[fmt::format("in {}", d)] = kFar;
    for (int64_t leaf = 0; leaf < devices / tree.leaf_devices; ++leaf)
      links[fmt::format("up {}", leaf)] = links[fmt::format("down {}", leaf)] =
          static_cast<double>(tree.leaf_devices) * kFar / tree.oversubscription;
    return SmallNetwork(links, [=](int64_t from, int64_t to) {
      std::vector<SmallNetwork::Hop> hops;
      if (from / unit == to / unit) return hops;
      hops = {{fmt::format("out {}", from)}, {fmt::format("in {}", to)}};
      if (from / tree.leaf_devices != to / tree.leaf_devices) {
        hops.push_back({fmt::format("up {}", from / tree.leaf_devices)});
        hops.push_back({fmt::format("down {}", to / tree.leaf_devices)});
      }
      return hops;
    });
  };
  return {fmt::format("fat tree {}:1", tree.oversubscription), on_topology(tree, unit), devices, unit, network};
}

TEST(Topology, FatTreesAsTheirLinksAreCounted) {
  for (double oversubscription : {1.0, 2.0, 7.0})
    expect_as_counted(fat_tree_case(64, 4, {16, oversubscription}),
                      {{8, 1}, {32, 1}, {64, 1}, {16, 4}, {8, 8}, {4, 16}, {2, 32}, {16, 2}, {4, 8}});
}

// Device i of a node on leaf i of its block of nodes.
NetworkCase rail_case(int64_t devices, int64_t unit, RailOptimised rail) {
  int64_t block = rail.leaf_devices > 0 ? rail.leaf_devices : devices;
  int64_t nodes_at_leaf = block / unit;
  auto network = [=] {
    std::map<std::string, double> links;
    for (int64_t d = 0; d < devices; ++d) links[fmt::format("out {}", d)] = links[fmt::format("in {}", d)] = kFar;
    for (int64_t leaf = 0; leaf < devices / block; ++leaf)
      for (int64_t i = 0; i < unit; ++i)
        links[fmt::format("up {} {}", leaf, i)] = links[fmt::format("down {} {}", leaf, i)] =
            static_cast<double>(nodes_at_leaf) * kFar / rail.oversubscription;
    return SmallNetwork(links, [=](int64_t from, int64_t to) {
      std::vector<SmallNetwork::Hop> hops;
      if (from / unit == to / unit) return hops;
      // Over the node's own links to the rail of the receiver.
      if (rail.pxn) from = from / unit * unit + to % unit;
      hops = {{fmt::format("out {}", from)}, {fmt::format("in {}", to)}};
      if (from / block != to / block || from % unit != to % unit) {
        hops.push_back({fmt::format("up {} {}", from / block, from % unit)});
        hops.push_back({fmt::format("down {} {}", to / block, to % unit)});
      }
      return hops;
    });
  };
  return {fmt::format("rails {}:1{}", rail.oversubscription, rail.pxn ? " pxn" : ""), on_topology(rail, unit), devices,
          unit, network};
}

TEST(Topology, RailsAsTheirLinksAreCounted) {
  for (bool pxn : {false, true})
    for (double oversubscription : {1.0, 3.0}) {
      expect_as_counted(rail_case(64, 4, {16, oversubscription, pxn}),
                        {{32, 1}, {64, 1}, {16, 4}, {8, 8}, {4, 16}, {2, 32}, {32, 2}, {16, 2}});
      expect_as_counted(rail_case(64, 4, {0, oversubscription, pxn}), {{64, 1}, {16, 4}, {2, 32}, {16, 2}});
    }
  // Nodes of four and groups with one device in every fifth place: each ring changes rails at every node.
  NetworkCase odd = rail_case(60, 4, {0, 3, false});
  EXPECT_DOUBLE_EQ(place_group(odd.machine, members({3, 5})).traffic.back().ring, 1 / 3.0);
  EXPECT_DOUBLE_EQ(place_group(odd.machine, members({3, 4})).traffic.back().ring, 1);
}

// A share x on the bundle between two groups, the rest over all third groups alike.
SmallNetwork dragonfly_network(int64_t devices, int64_t unit, const Dragonfly& fly, double x) {
  std::map<std::string, double> links;
  for (int64_t d = 0; d < devices; ++d) links[fmt::format("out {}", d)] = links[fmt::format("in {}", d)] = kFar;
  for (int64_t a = 0; a < fly.groups; ++a)
    for (int64_t b = 0; b < fly.groups; ++b)
      links[fmt::format("{} to {}", a, b)] =
          fly.global_bytes_per_s * static_cast<double>(fly.group_devices) / static_cast<double>(fly.groups - 1);
  return {links, [=](int64_t from, int64_t to) {
            std::vector<SmallNetwork::Hop> hops;
            if (from / unit == to / unit) return hops;
            hops = {{fmt::format("out {}", from)}, {fmt::format("in {}", to)}};
            int64_t a = from / fly.group_devices, b = to / fly.group_devices;
            if (a == b) return hops;
            hops.push_back({fmt::format("{} to {}", a, b), x});
            for (int64_t third = 0; third < fly.groups && x < 1; ++third) {
              if (third == a || third == b) continue;
              double share = (1 - x) / static_cast<double>(fly.groups - 2);
              hops.push_back({fmt::format("{} to {}", a, third), share});
              hops.push_back({fmt::format("{} to {}", third, b), share});
            }
            return hops;
          }};
}

TEST(Topology, DragonfliesWithMinimalRoutingAsTheirLinksAreCounted) {
  for (double global : {4.0, 10.0}) {
    Dragonfly fly{.group_devices = 8, .groups = 5, .global_bytes_per_s = global};
    NetworkCase c{"dragonfly", on_topology(fly, 2), 40, 2, [=] { return dragonfly_network(40, 2, fly, 1); }};
    expect_as_counted(c, {{40, 1}, {20, 2}, {10, 4}, {5, 8}, {4, 2}, {8, 1}});
  }
}

// Routing that adapts is as good as the best fixed share of traffic over third groups.
TEST(Topology, DragonfliesWithAdaptiveRoutingFindTheBestShare) {
  Dragonfly fly{.group_devices = 4, .groups = 6, .global_bytes_per_s = 2, .adaptive_routing = true};
  Machine machine = on_topology(fly, 2);
  for (const Lies& lies : {Lies{24, 1}, Lies{6, 4}, Lies{12, 1}, Lies{8, 1}}) {
    double ring = 1e300, exchange = 1e300;
    auto groups = strided_groups(24, lies.count, lies.stride);
    for (int i = 0; i <= 60; ++i) {
      SmallNetwork rings = dragonfly_network(24, 2, fly, i / 60.0), all = rings;
      send_rings(rings, groups, 2);
      send_to_all(all, groups);
      ring = std::min(ring, rings.seconds()), exchange = std::min(exchange, all.seconds());
    }
    EXPECT_NEAR(ring_seconds(machine, lies) / ring, 1, 1e-9) << lies.count;
    EXPECT_NEAR(beyond_start(machine, Collective::all_to_all, members(lies)) / exchange, 1, 1e-6) << lies.count;
  }
}

struct SmallTorus {
  std::vector<int64_t> shape;

  int64_t units() const {
    int64_t all = 1;
    for (int64_t size : shape) all *= size;
    return all;
  }
  std::vector<int64_t> at(int64_t unit) const {
    std::vector<int64_t> place;
    for (int64_t size : shape) place.push_back(unit % size), unit /= size;
    return place;
  }
  int64_t unit(const std::vector<int64_t>& place) const {
    int64_t all = 0;
    for (size_t a = shape.size(); a-- > 0;) all = all * shape[a] + place[a];
    return all;
  }

  SmallNetwork network(double device_rate) const {
    std::map<std::string, double> links;
    double each = device_rate / (2 * static_cast<double>(shape.size()));
    for (int64_t u = 0; u < units(); ++u)
      for (size_t a = 0; a < shape.size(); ++a)
        for (int way : {-1, 1}) links[name(u, a, way)] = each;
    SmallTorus self = *this;
    return {links, [self](int64_t from, int64_t to) {
              std::vector<SmallNetwork::Hop> hops;
              std::vector<int64_t> now = self.at(from), end = self.at(to);
              for (size_t a = 0; a < now.size(); ++a) {
                int64_t up = (end[a] - now[a] + self.shape[a]) % self.shape[a], down = self.shape[a] - up;
                if (up == 0) continue;
                // Where both ways are as long, half goes each way.
                for (int way : {-1, 1}) {
                  int64_t steps = way > 0 ? up : down, other = way > 0 ? down : up;
                  if (steps > other) continue;
                  std::vector<int64_t> walk = now;
                  for (int64_t s = 0; s < steps; ++s) {
                    hops.push_back({self.name(self.unit(walk), a, way), steps == other ? 0.5 : 1});
                    walk[a] = (walk[a] + way + self.shape[a]) % self.shape[a];
                  }
                }
                now[a] = end[a];
              }
              return hops;
            }};
  }
  // Along one axis, step by step one way: not the short way.
  std::string name(int64_t u, size_t axis, int way) const { return fmt::format("{} {} {}", u, axis, way); }
};

// A gather in parts, one for each axis of the group; each goes along the axes in another order. Every transfer is
// between neighbours of the group on a ring or a line, shard by shard.
double gather_on(const SmallTorus& torus, const std::vector<std::vector<int64_t>>& groups, double rate) {
  SmallNetwork network = torus.network(rate);
  for (const auto& group : groups) {
    std::vector<std::set<int64_t>> places(torus.shape.size());
    for (int64_t unit : group)
      for (size_t a = 0; a < torus.shape.size(); ++a) places[a].insert(torus.at(unit)[a]);
    std::vector<size_t> axes;
    for (size_t a = 0; a < places.size(); ++a)
      if (places[a].size() > 1) axes.push_back(a);
    double shard = kBytes / static_cast<double>(group.size()) / static_cast<double>(axes.size());
    for (size_t begin = 0; begin < axes.size(); ++begin) {
      double held = shard;
      for (size_t i = 0; i < axes.size(); ++i) {
        size_t axis = axes[(begin + i) % axes.size()];
        std::vector<int64_t> on(places[axis].begin(), places[axis].end());
        int64_t step = on[1] - on[0];
        bool ring = static_cast<int64_t>(on.size()) * step == torus.shape[axis];
        for (int64_t unit : group) {
          auto place = torus.at(unit);
          auto position = static_cast<size_t>(std::ranges::find(on, place[axis]) - on.begin());
          auto neighbour = [&](size_t to) {
            auto there = place;
            there[axis] = on[to % on.size()];
            return torus.unit(there);
          };
          double others = static_cast<double>(on.size() - 1);
          if (ring) {  // half of every other's shard each way
            network.send(unit, neighbour(position + 1), held * others / 2);
            network.send(unit, neighbour(position + on.size() - 1), held * others / 2);
          } else {  // what lies behind goes on
            if (position + 1 < on.size())
              network.send(unit, neighbour(position + 1), held * static_cast<double>(position + 1));
            if (position > 0)
              network.send(unit, neighbour(position - 1), held * static_cast<double>(on.size() - position));
          }
        }
        held *= static_cast<double>(on.size());
      }
    }
  }
  return network.seconds();
}

TEST(Topology, ToriAsTheirLinksAreCounted) {
  SmallTorus torus{{4, 4, 3}};
  Machine machine = on_topology(Torus{torus.shape}, 1);
  for (const Lies& lies : {Lies{4, 1}, Lies{16, 1}, Lies{48, 1}, Lies{4, 4}, Lies{3, 16}, Lies{12, 4}, Lies{2, 1},
                           Lies{2, 4}, Lies{8, 1}, Lies{2, 2}, Lies{3, 1}}) {
    auto groups = lies.count == 3 && lies.stride == 1 ? std::vector<std::vector<int64_t>>{{0, 1, 2}}
                                                      : strided_groups(48, lies.count, lies.stride);
    std::string what = fmt::format("{} devices, {} apart", lies.count, lies.stride);
    EXPECT_NEAR(ring_seconds(machine, lies) / gather_on(torus, groups, kFar), 1, 1e-9) << what;
    // Three of four: half of what the outer two exchange could go around over the fourth, which is not counted on.
    if (lies.count == 3 && lies.stride == 1) continue;
    SmallNetwork exchange = torus.network(kFar);
    send_to_all(exchange, groups);
    double counted = exchange.seconds(), closed = beyond_start(machine, Collective::all_to_all, members(lies));
    EXPECT_NEAR(closed / counted, 1, 1e-6) << what;
  }
  for (int offset : {1, 4, 16}) {
    SmallNetwork messages = torus.network(kFar);
    for (int64_t from = 0; from < 48; ++from) {
      auto there = torus.at(from);
      for (size_t a = 0; a < 3; ++a) there[a] = (there[a] + torus.at(offset)[a]) % torus.shape[a];
      messages.send(from, torus.unit(there), kBytes);
    }
    EXPECT_NEAR(beyond_start(machine, Collective::send, {0, offset}) / messages.seconds(), 1, 1e-6) << offset;
  }
}

// Nodes on the places of a torus: their devices share its links.
TEST(Topology, DevicesOfANodeShareTheLinksOfATorus) {
  Machine machine = on_topology(Torus{{4, 4}}, 2);
  // One of each node in a row of four: each way half of the other three shards, over links of 2 x 10 / 4 that a
  // neighbour uses as much.
  double n = 4;
  EXPECT_NEAR(ring_seconds(machine, {4, 2}), 2 * (kBytes * (n - 1) / n / 2) / (2 * kFar / 4), 1e-12);
  // Both of each node: half as many groups.
  EXPECT_NEAR(ring_seconds(machine, {8, 1}), kBytes * 7 / 8 / 2 / (2 * kFar / 4), 1e-12);
}

TEST(Topology, SwitchesLeaveEverything) {
  Machine machine = on_topology(SwitchedLinks{}, 4);
  for (const Lies& lies : {Lies{64, 1}, Lies{8, 4}, Lies{2, 32}})
    EXPECT_EQ(place_group(machine, members(lies)).traffic,
              (std::vector<TrafficShares>{TrafficShares{}, TrafficShares{}}));
}

// A fat tree says in one level what two levels say.
TEST(Topology, AFatTreeIsALevelInsideAnother) {
  Machine tree = on_topology(FatTree{16, 4}, 4), levels = on_topology(SwitchedLinks{}, 4);
  levels.levels.insert(levels.levels.begin() + 1, {.name = "leaf", .devices = 16, .link = {kFar, 0}});
  levels.levels.back().link.bytes_per_s = kFar / 4;
  for (Collective kind :
       {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter, Collective::all_to_all})
    for (const Lies& lies : {Lies{64, 1}, Lies{16, 4}, Lies{4, 16}, Lies{8, 1}})
      EXPECT_NEAR(beyond_start(tree, kind, members(lies)) / beyond_start(levels, kind, members(lies)), 1, 1e-6)
          << lies.count;
}

// SHARP between nodes: eight devices with 10 B/s each send everything once, where a ring sends it nearly twice.
TEST(Topology, SwitchesBetweenNodesReduceWhereTheySaySo) {
  Machine machine = on_topology(SwitchedLinks{}, 8);
  double ring = beyond_start(machine, Collective::all_reduce, members({64, 1}));
  EXPECT_NEAR(ring, 2.0 * 63 / 64 / (8 * kFar), 1e-6);
  machine.levels.back().reduces_in_switch = true;
  EXPECT_NEAR(beyond_start(machine, Collective::all_reduce, members({64, 1})), 1 / (8 * kFar), 1e-6);
}

}  // namespace
}  // namespace sextant
