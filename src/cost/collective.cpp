#include "cost/collective.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"

namespace sextant {

namespace {

// Microseconds, and what the protocol leaves of the bandwidth.
struct Protocol {
  double base_ring, base_tree, near_hop_ring, near_hop_tree, far_hop_ring, far_hop_tree;
  bool wants_own_adapter;  // between nodes it is used only where every device has an adapter of its own
  double share;            // of the bandwidth
  double most_gb_s;        // of one rank, however fast the links
};
constexpr double kNoLimit = 1e9;
constexpr std::array kProtocols{Protocol{6.6, 6.8, 0.6, 0.6, 2.7, 5.0, false, 0.5, 35},           // LL
                                Protocol{14.0, 14.0, 1.9, 1.25, 4.0, 8.5, true, 0.92, 300},       // LL128
                                Protocol{8.4, 8.4, 3.4, 4.0, 14.0, 14.0, false, 1.0, kNoLimit}};  // Simple

// An all-reduce inside the switch against the ring's, in long messages (measured: 473 and 363 GB/s on eight H200).
constexpr double kSwitchGain = 1.3;
constexpr double kSwitchBaseS = 25e-6;
constexpr int64_t kLeastRanksInSwitch = 5;

double micro(double us) {
  return us * 1e-6;
}

// Of one device over the links of a level, with nobody in its way.
double link_rate(const Machine& machine, const Efficiencies& efficiency, int level) {
  const Link& link = machine.levels[static_cast<size_t>(level)].link;
  return link.bytes_per_s * (link.reached ? 1 : level == 0 ? efficiency.near_link : efficiency.far_link);
}

// The same beside all other groups of the run, in one pattern of messages.
double rate_at(const Machine& machine, const Efficiencies& efficiency, const GroupPlace& place, int level,
               double TrafficShares::*pattern) {
  return link_rate(machine, efficiency, level) * place.traffic[static_cast<size_t>(level)].*pattern;
}

// The spread of a group over nodes: the innermost level is where links are fast.
struct Spread {
  double ranks, per_node, nodes;
};

Spread spread_of(const GroupPlace& place) {
  double n = static_cast<double>(place.ranks), g = static_cast<double>(place.inside.front());
  return {n, g, std::max(1.0, std::ceil(n / g))};
}

const Link& link_of(const Machine& machine, const GroupPlace& place) {
  return machine.levels[static_cast<size_t>(place.level)].link;
}

// Of a collective that is a call of its own.
double far_latency(const Machine& machine, const GroupPlace& place, double hop_us) {
  const Link& link = link_of(machine, place);
  return std::max({micro(hop_us), link.latency_s, link.alone_s});
}

// `steps`: 2 for an all-reduce (there and back), 1 for a gather or scatter.
double ring_hops(const Protocol& p, const GroupPlace& place, double steps, double far_hop) {
  Spread s = spread_of(place);
  double far = s.nodes > 1 ? steps * (s.nodes - 1) : 0;
  double near = steps * (s.ranks - 1) - far;
  return near * micro(p.near_hop_ring) + far * far_hop;
}

double ring_latency(const Machine& machine, const Protocol& p, const GroupPlace& place, double steps) {
  return micro(p.base_ring) + ring_hops(p, place, steps, far_latency(machine, place, p.far_hop_ring));
}

double tree_latency(const Machine& machine, const Protocol& p, const GroupPlace& place) {
  Spread s = spread_of(place);
  return micro(p.base_tree) +
         2 * ((s.per_node - 1) * micro(p.near_hop_tree) +
              (s.nodes > 1 ? std::log2(s.nodes) * far_latency(machine, place, p.far_hop_tree) : 0));
}

// Adapters carry 100 Gb/s and more: what is less for each device is shared.
bool possible(const Machine& machine, const Protocol& p, const GroupPlace& place) {
  constexpr double kAdapter = 12.4e9;
  return place.level == 0 || !p.wants_own_adapter || link_of(machine, place).bytes_per_s >= kAdapter;
}

double protocol_bandwidth(const Protocol& p, double bandwidth) {
  return std::min(bandwidth * p.share, p.most_gb_s * 1e9);
}

// Bytes per second of each rank over the links outside the node, with all members of a node on theirs.
double far_bandwidth(const Machine& machine, const Efficiencies& efficiency, const GroupPlace& place) {
  double bandwidth = 1e300;
  for (int l = 1; l <= place.level; ++l)
    bandwidth = std::min(bandwidth, rate_at(machine, efficiency, place, l, &TrafficShares::ring) *
                                        static_cast<double>(place.inside[static_cast<size_t>(l) - 1]));
  return bandwidth;
}

bool switches_add_up(const Machine& machine, const GroupPlace& place) {
  if (place.ranks < kLeastRanksInSwitch) return false;
  bool all = place.level > 0 || machine.levels.front().reduces_in_switch;
  for (int l = 1; l <= place.level; ++l) all = all && machine.levels[static_cast<size_t>(l)].reduces_in_switch;
  return all;
}

// NVLS in the node, SHARP between nodes: a node scatters, its links carry everything out and the sum back once, and it
// gathers, all at the same time.
double in_switch_seconds(const Machine& machine, const Efficiencies& efficiency, double bytes,
                         const GroupPlace& place) {
  double g = static_cast<double>(place.inside.front()),
         gain = machine.levels.front().reduces_in_switch ? kSwitchGain : 1;
  double near = 2 * bytes * (g - 1) / g / (gain * rate_at(machine, efficiency, place, 0, &TrafficShares::ring));
  if (place.level == 0) return kSwitchBaseS + near;
  return kSwitchBaseS + 2 * far_latency(machine, place, 0) +
         std::max(near, bytes / far_bandwidth(machine, efficiency, place));
}

// Between two nodes a tree is one link: each sends what it has added up once, and a ring nearly twice.
double tree_bandwidth(const Machine& machine, const Efficiencies& efficiency, const GroupPlace& place,
                      double ring_bandwidth) {
  if (spread_of(place).nodes != 2 || place.inside.front() == 1) return ring_bandwidth;
  return std::min(rate_at(machine, efficiency, place, 0, &TrafficShares::ring),
                  2 * far_bandwidth(machine, efficiency, place));
}

double all_reduce_seconds(const Machine& machine, const Efficiencies& efficiency, double bytes, const GroupPlace& place,
                          double bandwidth) {
  double in_tree = tree_bandwidth(machine, efficiency, place, bandwidth);
  double n = static_cast<double>(place.ranks), travel = 2 * bytes * (n - 1) / n, best = 1e300;
  for (const Protocol& p : kProtocols) {
    if (!possible(machine, p, place)) continue;
    best = std::min(best, ring_latency(machine, p, place, 2) + travel / protocol_bandwidth(p, bandwidth));
    best = std::min(best, tree_latency(machine, p, place) + travel / (0.92 * protocol_bandwidth(p, in_tree)));
  }
  if (switches_add_up(machine, place)) best = std::min(best, in_switch_seconds(machine, efficiency, bytes, place));
  return best;
}

double one_way_seconds(const Machine& machine, double bytes, const GroupPlace& place, double bandwidth) {
  double n = static_cast<double>(place.ranks), best = 1e300;
  for (const Protocol& p : kProtocols)
    if (possible(machine, p, place))
      best =
          std::min(best, ring_latency(machine, p, place, 1) + bytes * (n - 1) / n / protocol_bandwidth(p, bandwidth));
  return best;
}

// From one rank to all along the ring, in the protocol of long messages. A hop passes on a whole piece before the next
// one has any of it: an eighth of NCCL's buffer of 4 MiB. That is why broadcasts to many ranks are slow: InternEvo's
// weights, one tensor after the other, took 0.1 s more on 16 ranks than inside a node and 2.7 s more on 1,024.
double broadcast_seconds(const Machine& machine, const Efficiencies& efficiency, double bytes, const GroupPlace& place,
                         double bandwidth) {
  constexpr double kPiece = 4 * 1048576.0 / 8;
  const Protocol& p = kProtocols.back();
  Spread s = spread_of(place);
  double far = s.nodes - 1, near = s.ranks - 1 - far, piece = std::min(bytes, kPiece);
  double near_rate = rate_at(machine, efficiency, place, 0, &TrafficShares::ring);
  return ring_latency(machine, p, place, 1) + near * piece / near_rate + far * piece / bandwidth + bytes / bandwidth;
}

// Every rank sends a part to every other: what stays in the node and what leaves it travel at once.
double all_to_all_seconds(const Machine& machine, const Efficiencies& efficiency, double bytes,
                          const GroupPlace& place) {
  double n = static_cast<double>(place.ranks), seconds = 0;
  int64_t reached = 1;
  for (int l = 0; l <= place.level; ++l) {
    int64_t inside = place.inside[static_cast<size_t>(l)];
    double share = static_cast<double>(l == place.level ? place.ranks - reached : inside - reached) / n;
    seconds = std::max(seconds, bytes * share / rate_at(machine, efficiency, place, l, &TrafficShares::exchange));
    reached = inside;
  }
  return micro(8.4) + (n - 1) * micro(place.level == 0 ? 0.6 : 2.7) + seconds;
}

}  // namespace

Exchange even_exchange(double bytes, const GroupPlace& place) {
  double n = static_cast<double>(place.ranks), near = static_cast<double>(place.inside.front());
  return {.near_bytes = bytes * (near - 1) / n, .far_bytes = bytes * (n - near) / n};
}

double exchange_seconds(const Machine& machine, const Efficiencies& efficiency, const Exchange& exchange,
                        const GroupPlace& place) {
  auto rate = [&](int level) { return rate_at(machine, efficiency, place, level, &TrafficShares::exchange); };
  double near = exchange.near_bytes / rate(0);
  double far = place.level > 0 ? exchange.far_bytes / rate(place.level) : 0;
  return micro(8.4) + static_cast<double>(place.ranks - 1) * micro(place.level == 0 ? 0.6 : 2.7) + std::max(near, far);
}

namespace {

TrafficShares traffic_at(const Machine& machine, size_t level, const std::vector<int>& ranks) {
  const Level& at = machine.levels[level];
  if (std::holds_alternative<SwitchedLinks>(at.topology)) return {};
  std::vector<int64_t> devices;
  for (int rank : ranks)
    if (at.devices == 0 || rank / at.devices == ranks.front() / at.devices)
      devices.push_back(at.devices == 0 ? rank : rank % at.devices);
  std::ranges::sort(devices);
  return traffic_shares(at.topology, machine.extent_of(level), devices);
}

}  // namespace

GroupPlace place_group(const Machine& machine, const std::vector<int>& ranks) {
  BUG_IF(machine.levels.empty(), "{} has no levels", machine.name);
  GroupPlace place{.ranks = static_cast<int64_t>(ranks.size()),
                   .inside = {},
                   .level = static_cast<int>(machine.levels.size()) - 1,
                   .traffic = {}};
  for (size_t l = 0; l < machine.levels.size(); ++l) {
    int64_t size = machine.levels[l].devices;
    int64_t together = 0;
    for (int rank : ranks) together += size == 0 || rank / size == ranks.front() / size ? 1 : 0;
    place.inside.push_back(together);
    place.traffic.push_back(traffic_at(machine, l, ranks));
    if (together == place.ranks && static_cast<int>(l) < place.level) place.level = static_cast<int>(l);
  }
  return place;
}

double group_bandwidth(const Machine& machine, const Efficiencies& efficiency, const GroupPlace& place) {
  double bandwidth = rate_at(machine, efficiency, place, 0, &TrafficShares::ring);
  // Between units of a level, all members inside one share what their links carry together. Where one link serves a
  // whole unit alone in its group, the neighbours use theirs for groups of their own.
  if (place.level > 0 && place.inside.front() == 1) bandwidth = 1e300;
  return std::min(bandwidth, far_bandwidth(machine, efficiency, place));
}

double collective_seconds(const Machine& machine, const Efficiencies& efficiency, Collective kind, double bytes,
                          const GroupPlace& place) {
  if (place.ranks <= 1 || bytes <= 0) return 0;
  double bandwidth = group_bandwidth(machine, efficiency, place);
  switch (kind) {
    case Collective::all_reduce:
      return all_reduce_seconds(machine, efficiency, bytes, place, bandwidth);
    case Collective::all_gather:
    case Collective::reduce_scatter:
      return one_way_seconds(machine, bytes, place, bandwidth);
    case Collective::broadcast:
      return broadcast_seconds(machine, efficiency, bytes, place, bandwidth);
    case Collective::all_to_all:
      return all_to_all_seconds(machine, efficiency, bytes, place);
    case Collective::shift:
    case Collective::send:
    case Collective::receive:
      return micro(place.level == 0 ? 8.4 : 20) +
             bytes / rate_at(machine, efficiency, place, place.level, &TrafficShares::message);
  }
  BUG("unknown collective");
}

double coalesced_seconds(const Machine& machine, const Efficiencies& efficiency, Collective kind, double bytes,
                         const GroupPlace& place) {
  if (place.ranks <= 1 || bytes <= 0) return 0;
  double n = static_cast<double>(place.ranks), steps = kind == Collective::all_reduce ? 2 : 1, best = 1e300;
  double bandwidth = group_bandwidth(machine, efficiency, place);
  for (const Protocol& p : kProtocols) {
    if (!possible(machine, p, place)) continue;
    double hops = ring_hops(p, place, steps, std::max(micro(p.far_hop_ring), link_of(machine, place).latency_s));
    best = std::min(best, hops + steps * bytes * (n - 1) / n / protocol_bandwidth(p, bandwidth));
  }
  return best;
}

}  // namespace sextant
