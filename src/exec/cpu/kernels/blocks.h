// How kernels cut work into tasks: by shape alone, so that results never depend on the thread count.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/threads.h"
#include "base/units.h"
#include "targets/cpu/task_sizes.h"

namespace sextant::cpu {

// Calls body(begin, end) for consecutive blocks of [0, n).
template <class Body>
void for_blocks(ThreadTeam& team, int64_t n, int64_t block, const Body& body) {
  team.parallel_for(ceil_div(n, block),
                    [&](int64_t task, int) { body(task * block, std::min(n, (task + 1) * block)); });
}

// Rows of `width` elements in one task of a streaming op.
inline int64_t rows_per_task(int64_t width) {
  return std::max<int64_t>(1, kElementsPerTask / std::max<int64_t>(1, width));
}

}  // namespace sextant::cpu
