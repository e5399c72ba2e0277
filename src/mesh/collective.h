// The ways in which ranks exchange data, and how many bytes each takes: the one table that layouts, messages, prices,
// traffic and benchmarks read.
#pragma once

#include <cstdint>
#include <string_view>

namespace sextant {

enum class Collective : uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  broadcast,  // and its mirror image, a reduction to one rank
  shift,      // every rank sends to the next along the axis, and receives from the one before
  send,       // to one other rank
  receive,    // from one
};

std::string_view name_of(Collective collective);

// The share of `bytes` that each rank sends, of a group of `ranks`. `bytes`: what is reduced; what a rank has after a
// gather and before a scatter; what a rank exchanges in all in an all-to-all; the message. nccl-tests calls it the bus
// factor.
constexpr double share_sent(Collective collective, int64_t ranks) {
  double others = ranks > 1 ? static_cast<double>(ranks - 1) / static_cast<double>(ranks) : 0;
  switch (collective) {
    case Collective::all_reduce:
      return 2 * others;
    case Collective::all_gather:
    case Collective::reduce_scatter:
    case Collective::all_to_all:
      return others;
    case Collective::broadcast:
    case Collective::shift:
    case Collective::send:
      return 1;
    case Collective::receive:
      return 0;
  }
  return 0;
}

// A rank's place in its group.
struct GroupPosition {
  int64_t ranks = 1, index = 0;
};

// The exact number of elements that one rank sends. In an all-reduce every rank reduces one part: it sends the other
// parts to their owners, then sends its reduced part to all others. Where the elements do not divide evenly, the first
// parts are one element longer. `part` is the largest part that one rank sends to one other rank in a gather, scatter
// or all-to-all.
int64_t elements_sent(Collective collective, int64_t elements, int64_t part, const GroupPosition& at);

}  // namespace sextant
