// Bandwidths of collectives as nccl-tests defines them, so that figures can be compared with everybody's. `bytes` is
// its size: what is sent in an all-reduce and a broadcast, all that is gathered, all that is scattered, all that one
// rank exchanges. The bus bandwidth is what each link of a ring would have carried.
#pragma once

#include <cstdint>
#include <string_view>

namespace sextant {

enum class CommOp : uint8_t { all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, send_receive };
inline constexpr CommOp kCommOps[] = {CommOp::all_reduce, CommOp::all_gather, CommOp::reduce_scatter,
                                      CommOp::all_to_all, CommOp::broadcast,  CommOp::send_receive};

constexpr std::string_view name_of(CommOp op) {
  constexpr std::string_view kNames[] = {"all_reduce", "all_gather", "reduce_scatter",
                                         "all_to_all", "broadcast",  "send_receive"};
  return kNames[static_cast<int>(op)];
}

constexpr double bus_factor(CommOp op, int ranks) {
  double others = ranks > 1 ? static_cast<double>(ranks - 1) / ranks : 0;
  if (op == CommOp::all_reduce) return 2 * others;
  return op == CommOp::broadcast || op == CommOp::send_receive ? 1 : others;
}

constexpr double algorithm_bandwidth(double bytes, double seconds) {
  return seconds > 0 ? bytes / seconds : 0;
}
constexpr double bus_bandwidth(CommOp op, int ranks, double bytes, double seconds) {
  return algorithm_bandwidth(bytes, seconds) * bus_factor(op, ranks);
}

// What each rank's share of the network between `nodes` machines carries in a ring over all ranks.
constexpr double wire_bandwidth(double bus, int nodes, int ranks) {
  return ranks > 1 ? bus * (nodes - 1) / (ranks - 1) : 0;
}

}  // namespace sextant
