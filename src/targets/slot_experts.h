// Where the expert of a slot stands in the weight of one rank. Slots are those of tokens, or rows that dispatch brought
// to the ranks of their experts (ops/dispatch.cpp), of which each block has rows of its own.
#pragma once

#include <cstdint>

namespace sextant {

struct SlotExperts {
  const int32_t* chosen;
  // Rows that were brought to their experts: so many stand side by side, in blocks of experts. 0: slots as they are.
  int64_t rows = 0, rows_of_block = 0, experts_of_block = 0;

  constexpr int32_t of(int64_t slot) const {  // -1: none
    if (rows == 0 || chosen[slot] < 0) return chosen[slot];
    return static_cast<int32_t>(slot % rows / rows_of_block * experts_of_block + chosen[slot] % experts_of_block);
  }
};

// Of rows: `experts` in `blocks` blocks are all there are, and this rank holds `held` of them.
struct BlocksOfExperts {
  int64_t experts, blocks, held;
};
constexpr SlotExperts experts_of_rows(const int32_t* chosen, int64_t rows, const BlocksOfExperts& all) {
  int64_t of_block = all.experts / all.blocks;
  return {chosen, rows, rows / (all.held / of_block), of_block};
}

}  // namespace sextant
