// Where what an op needs is asked for so that it comes while the block before computes.
#pragma once

#include <cstddef>
#include <vector>

#include "ir/lane.h"
#include "ir/op_def.h"

namespace sextant {

// The first op of the block that runs before op `at`'s block. Reductions of finished gradients and copies between
// spaces stand among the ops of a block and belong to none.
inline size_t one_block_ahead(const std::vector<Op>& ops, size_t at) {
  auto in_block = [&](size_t i, int block) {
    return ops[i].block == block || last_microbatch_only(ops[i]) || ops[i].def->between_spaces;
  };
  size_t start = at;
  while (start > 0 && in_block(start - 1, ops[at].block)) --start;
  if (start == 0) return 0;
  int previous = ops[start - 1].block;
  while (start > 0 && in_block(start - 1, previous)) --start;
  return start;
}

}  // namespace sextant
