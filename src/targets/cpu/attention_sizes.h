// The blocks of attention on a CPU, and the scratch of a thread that works on one. Where values are not as wide as
// queries and keys, `dim` is the wider of the two.
#pragma once

#include <algorithm>
#include <cstdint>

#include "targets/cpu/gemm_sizes.h"

namespace sextant::cpu {

constexpr int64_t kQueriesPerBlock = 128;
constexpr int64_t kKeysPerBlock = 256;
constexpr int64_t kScores = kQueriesPerBlock * kKeysPerBlock;
constexpr int64_t kScoreBytes = kScores * int64_t{sizeof(double)};

// Scores, then the GEMMs' scratch.
inline int64_t attend_scratch(int64_t dim) {
  return kScoreBytes + std::max(multiply_scratch(kKeysPerBlock, dim), multiply_scratch(dim, kKeysPerBlock));
}

// The largest logits of so many heads, in front of the scratch of threads.
inline int64_t logit_bytes(int64_t heads) {
  return round_up(heads * int64_t{sizeof(double)}, 64);
}

// Scores and their gradients, then the GEMMs' scratch.
inline int64_t attend_backward_scratch(int64_t dim) {
  int64_t gemms = std::max({multiply_scratch(kKeysPerBlock, dim), multiply_scratch(dim, kKeysPerBlock),
                            multiply_scratch(dim, kQueriesPerBlock)});
  return 2 * kScoreBytes + gemms;
}

// A step of a ring attends into a block of its own, y and lse, and adds that onto the sums of the steps before.
inline int64_t ring_block_bytes(int64_t dim) {
  return round_up(kQueriesPerBlock * (dim + 1) * int64_t{sizeof(double)}, 64);
}
inline int64_t ring_step_scratch(int64_t dim) {
  return ring_block_bytes(dim) + round_up(attend_scratch(dim), 64);
}
inline int64_t ring_step_backward_scratch(int64_t dim) {
  return round_up(attend_backward_scratch(dim), 64);
}

}  // namespace sextant::cpu
