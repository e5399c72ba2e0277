// sort_slots: brings the slots of experts together by expert, on the device: which ones an expert has, and how its rows
// are cut into tiles, is known there only. Stable and without atomics on the result, so always the same.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace sextant::cuda {

// The experts of slots, as places in the weight of this rank.
struct SlotExperts {
  const int32_t* chosen;
  // Rows that were brought to their experts: so many stand side by side, in blocks of experts. 0: slots as they are.
  int64_t rows = 0, rows_of_block = 0, experts_of_block = 0;

  __device__ int of(int64_t slot) const {  // -1: none
    if (rows == 0 || chosen[slot] < 0) return chosen[slot];
    return static_cast<int>(slot % rows / rows_of_block * experts_of_block + chosen[slot] % experts_of_block);
  }
};

struct SlotOrder {
  const int32_t* order;    // the slots, those of expert 0 first
  const int32_t* offsets;  // [experts + 1]: where each expert's begin in `order`
  const int32_t* tiles;    // [experts + 1]: how many tiles of kExpertTileRows the experts before it have
  int64_t most_tiles;      // no more than that in all
};

// `workspace`: SlotOrderSizes::end bytes.
SlotOrder sort_slots(const SlotExperts& experts, int64_t slots, int64_t expert_count, std::byte* workspace,
                     cudaStream_t stream);

}  // namespace sextant::cuda
