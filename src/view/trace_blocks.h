// A Trace cut into blocks that can be drawn: as fine as a picture can show, never more than it can hold. In: the events
// of one step. Out: per rank and lane the blocks in order of time, each with what it is made of.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/trace.h"

namespace sextant {

// The kind of an event: a phase ("forward", …), or a message by its axes.
struct TraceKind {
  std::string name;
  bool message = false;
};

struct TraceBlock {
  double start_s = 0, end_s = 0;
  std::vector<double> seconds;  // by kind; what is left of its time is idle
  size_t events = 0;
  int64_t first_microbatch = 0, last_microbatch = 0;
  std::string label;  // of what all its events have in common

  double length() const { return end_s - start_s; }
  double busy() const;
};

struct TraceLane {
  int rank = 0;
  std::string lane;
  std::vector<TraceBlock> blocks;
  double computing_s = 0;  // of its events that are no messages
};

// From fine to coarse: what one block stands for.
enum class BlockOf : uint8_t { op, layer, microbatch, moment };

struct TraceBlocks {
  double end_s = 0;
  std::vector<TraceKind> kinds;  // phases first, in the order of a step
  std::vector<TraceLane> lanes;  // by rank; of each, compute before what runs beside it
  BlockOf each = BlockOf::op;
  size_t events = 0;
};

struct BlockLimits {
  size_t per_lane = 250;
  size_t in_all = 3000;
  BlockOf finest = BlockOf::op;
};

// The finest blocks within the limits.
TraceBlocks cut_into_blocks(const Trace& trace, const BlockLimits& limits = {});

std::string name_of(BlockOf each);

}  // namespace sextant
