// The scratch of the linears of experts on a GPU: the slots in the order of their experts, then what a kernel needs
// itself.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "targets/local_experts.h"

namespace sextant::cuda {

constexpr int64_t kSlotsPerBlock = 1024;  // of which one block counts and places those of each expert
constexpr int64_t kExpertTileRows = 128;  // slots of one expert that are multiplied at once

constexpr int64_t kLoadTokens = 64;  // of which one block sums the scores

constexpr int64_t in_pieces(int64_t bytes) {
  return (bytes + 255) / 256 * 256;
}

// The number of tiles before each expert, and before the end.
constexpr int64_t tile_count_bytes(int64_t experts) {
  return in_pieces((experts + 1) * 4);
}

// How many of a block's slots each expert has.
constexpr int64_t slot_count_bytes(int64_t slots, int64_t experts) {
  return in_pieces(ceil_div(slots, kSlotsPerBlock) * experts * 4);
}

// In this order: slots by expert, where each expert's begin, the number of tiles before each, counts by block.
struct SlotOrderSizes {
  constexpr SlotOrderSizes(int64_t slots, int64_t experts)
      : offsets(in_pieces(slots * 4)),
        tiles(offsets + in_pieces((experts + 1) * 4)),
        counts(tiles + tile_count_bytes(experts)),
        end(counts + slot_count_bytes(slots, experts)),
        most_tiles(slots / kExpertTileRows + (slots < experts ? slots : experts)) {}

  int64_t offsets, tiles, counts, end;
  int64_t most_tiles;  // however slots are spread
};

}  // namespace sextant::cuda
