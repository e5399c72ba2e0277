// Rows that belong to the copies of tokens (ops/token_copies.cpp): in each block of rows, those of one token stand side
// by side, and the first run of them has the first copy.
#pragma once

#include <cstdint>

#include "base/shape.h"
#include "ir/attrs.h"

namespace sextant {

// Counts that the map keeps for each queue, in its scratch: slots and copies that tokens ask for, and the slots that
// its rounds serve.
struct QueueCounts {
  int64_t slots, copies, served;
};

struct CopyRuns {
  CopyRuns(const Attrs& attrs, const int32_t* row_experts, const LocalShape& rows)
      : experts(row_experts),
        all_experts(attrs.integer("experts")),
        capacity(attrs.integer("capacity")),
        copies(attrs.integer("copies")),
        blocks(rows.count() / capacity) {}

  constexpr int64_t rows() const { return blocks * capacity; }
  // Whether a row is the first of its copy's, in its block.
  constexpr bool begins(int64_t row) const {
    if (experts[row] < 0) return false;
    return row % capacity == 0 || !same(row - 1, row);
  }
  // Whether two rows of a block that stand side by side are of one token.
  constexpr bool same(int64_t row, int64_t next) const {
    return experts[row] >= 0 && experts[next] >= 0 && experts[row] / all_experts == experts[next] / all_experts;
  }

  const int32_t* experts;
  int64_t all_experts;  // a row's number is token·all_experts + expert
  int64_t capacity, copies;
  int64_t blocks;  // of all groups
};

}  // namespace sextant
