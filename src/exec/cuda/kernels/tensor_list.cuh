// A list of tensors of any sizes as the work of one grid: a launch takes up to `kMost` of them, each cut into blocks of
// equal size, and a block finds its tensor in the list, which is a kernel parameter. So hundreds of small tensors
// neither wait for each other nor leave the device empty.
#pragma once

#include <cstdint>

#include "base/units.h"

namespace sextant::cuda {

// Entry: what the kernel knows of one tensor; it has `int64_t count` elements.
template <class Entry, int kMost>
struct TensorList {
  int tensors = 0;
  uint32_t blocks = 0;
  uint32_t first_block[kMost];
  Entry entries[kMost];

  bool full() const { return tensors == kMost; }

  void add(const Entry& entry, int64_t elements_per_block) {
    add_blocks(entry, ceil_div(entry.count, elements_per_block));
  }
  void add_blocks(const Entry& entry, int64_t of_entry) {
    first_block[tensors] = blocks;
    entries[tensors++] = entry;
    blocks += static_cast<uint32_t>(of_entry);
  }

  // The last tensor that begins at or before a block; tensors without elements have no block.
  __device__ int tensor_of(uint32_t block) const {
    int low = 0, high = tensors;
    while (high - low > 1) {
      int middle = (low + high) / 2;
      (first_block[middle] <= block ? low : high) = middle;
    }
    return low;
  }
};

}  // namespace sextant::cuda
