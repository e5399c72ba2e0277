// The slots of experts brought together by expert, on the device: which ones an expert has, and how its rows are cut
// into tiles, is known there only. Stable and without atomics on the result, so always the same.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "targets/ordered_slots.h"
#include "targets/slot_experts.h"

namespace sextant::cuda {

struct SlotOrder {
  const int32_t* order;    // the slots, those of expert 0 first
  const int32_t* places;   // of each slot, in that order; null where it was not asked for
  const int32_t* offsets;  // [experts + 1]: where each expert's begin in `order`
  const int32_t* tiles;    // [experts + 1]: how many tiles of kExpertTileRows the experts before it have
  int64_t most_tiles;      // no more than that in all
};

// `workspace`: SlotOrderSizes::end bytes.
SlotOrder sort_slots(const SlotExperts& experts, int64_t slots, int64_t expert_count, std::byte* workspace,
                     cudaStream_t stream);

// Of slots that slot_order has sorted. `workspace`: tile_count_bytes.
SlotOrder tiles_of_order(const OrderedSlots& ordered, int64_t slots, int64_t expert_count, std::byte* workspace,
                         cudaStream_t stream);

}  // namespace sextant::cuda
