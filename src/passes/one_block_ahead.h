// Where what an op needs is asked for so that it comes while the block before computes.
#pragma once

#include <cstddef>
#include <vector>

#include "ir/op.h"

namespace sextant {

// The first op of the block that runs before op `at`'s block.
inline size_t one_block_ahead(const std::vector<Op>& ops, size_t at) {
  size_t start = at;
  while (start > 0 && ops[start - 1].block == ops[at].block) --start;
  if (start == 0) return 0;
  int previous = ops[start - 1].block;
  while (start > 0 && ops[start - 1].block == previous) --start;
  return start;
}

}  // namespace sextant
