// The gradient of attention of one head: a block of queries against a block of keys, square by square, from the
// log-sum-exp that forward left, so that no matrix is larger than a square.
#pragma once

#include <cstddef>
#include <cstdint>

#include "exec/cpu/kernels/attend.h"
#include "exec/cpu/kernels/gemm.h"

namespace sextant::cpu {

template <class T>
struct AttendGradient {
  int64_t queries, keys;
  int64_t diagonal;          // query i sees the keys up to i + diagonal; not negative
  int64_t dim;               // of queries and keys
  int64_t value_dim;         // of values and y
  Matrix<T> q, k, v, y, dy;  // rows are positions
  const T* lse;              // one per query
  T* dq;
  int64_t dq_stride;
  Write dq_write;  // over: this is the first block of keys
  T *dk, *dv;      // added onto
  int64_t dkv_stride;
  const int32_t* begins = nullptr;  // one per query: as FirstKeys has them
  T slope = 0;                      // ALiBi, as in attend.h
  KeyPlaces places = {};            // as in attend.h
  T scale = 0;                      // of scores; 0 = 1/sqrt(dim)
  KeyRange range = {};              // as in attend.h
  WeightDropout dropout = {};
};

template <class T>
void attend_backward(const AttendGradient<T>& block, std::byte* scratch);  // attend_backward_scratch bytes

}  // namespace sextant::cpu
