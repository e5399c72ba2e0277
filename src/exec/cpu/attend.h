// Causal softmax attention of a block of queries of one head over the keys and values of one head, key block by key
// block with a running maximum (FlashAttention's recurrence), so that no row of scores is ever longer than
// kKeysPerBlock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "exec/cpu/gemm.h"

namespace sextant::cpu {

constexpr int64_t kQueriesPerBlock = 128;
constexpr int64_t kKeysPerBlock = 256;

template <class T>
struct Attend {
  int64_t queries;  // at most kQueriesPerBlock
  int64_t first;    // position of the first query: it sees keys 0 … first, the next one key more
  int64_t dim;
  Matrix<T> q, k, v;  // rows are positions
  T* y;
  int64_t y_stride;
  T* lse;  // one per query, or null
  int64_t keys = std::numeric_limits<int64_t>::max();  // there are no more than this
};

template <class T>
void attend(const Attend<T>& block, std::byte* scratch);
int64_t attend_scratch(int64_t dim);

}  // namespace sextant::cpu
