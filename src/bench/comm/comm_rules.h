// Bandwidths of collectives as nccl-tests defines them, so that figures can be compared with everybody's. `bytes` is
// its size: what is sent in an all-reduce and a broadcast, all that is gathered, all that is scattered, all that one
// rank exchanges. The bus bandwidth is what each link of a ring would have carried.
#pragma once

#include <cstdint>
#include <string_view>

#include "mesh/collective.h"

namespace sextant {

// The collectives that the benchmark measures.
inline constexpr Collective kCommOps[] = {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter,
                                          Collective::all_to_all, Collective::broadcast,  Collective::shift};

// As nccl-tests' users call it: a shift is its sendrecv.
inline std::string_view bench_name(Collective op) {
  return op == Collective::shift ? "send_receive" : name_of(op);
}

constexpr double algorithm_bandwidth(double bytes, double seconds) {
  return seconds > 0 ? bytes / seconds : 0;
}
constexpr double bus_bandwidth(Collective op, int ranks, double bytes, double seconds) {
  return algorithm_bandwidth(bytes, seconds) * share_sent(op, ranks);
}

}  // namespace sextant
