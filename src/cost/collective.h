// The time of a collective or message, from its kind, its bytes and where the ranks of its group sit. Latency and
// bandwidth follow NCCL's own model (src/graph/tuning.cc, 2026): the best of ring and tree in three protocols.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cost/machine.h"
#include "mesh/collective.h"

namespace sextant {

// How the ranks of a group are spread over a machine's levels.
struct GroupPlace {
  int64_t ranks = 1;
  std::vector<int64_t> inside;         // per level: how many of them share one unit of it
  int level = 0;                       // the innermost level that holds them all
  std::vector<TrafficShares> traffic;  // per level: what its topology leaves of a device's rate for this group
};

// Ranks sit on devices in order: rank r on device r.
GroupPlace place_group(const Machine& machine, const std::vector<int>& ranks);

// `bytes` as share_sent counts them.
double collective_seconds(const Machine& machine, const Efficiencies& efficiency, Collective kind, double bytes,
                          const GroupPlace& place);

// Bytes that a rank sends to other ranks of its group in an all-to-all: inside the innermost level, and beyond it.
struct Exchange {
  double near_bytes = 0, far_bytes = 0;
};
// Evenly to all ranks, itself among them.
Exchange even_exchange(double bytes, const GroupPlace& place);
double exchange_seconds(const Machine& machine, const Efficiencies& efficiency, const Exchange& exchange,
                        const GroupPlace& place);

// The part of one tensor in a call with many, an all-reduce, gather or scatter: such a call takes rings, by its size as
// a whole, and each of its tensors goes around.
double coalesced_seconds(const Machine& machine, const Efficiencies& efficiency, Collective kind, double bytes,
                         const GroupPlace& place);

// Bytes per second that each rank of the group can send to its neighbours while all do.
double group_bandwidth(const Machine& machine, const Efficiencies& efficiency, const GroupPlace& place);

}  // namespace sextant
