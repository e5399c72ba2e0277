// Our own attention kernels: for what cuDNN does not do (f32, odd head sizes, caches, steps of a ring, windows beside
// documents, chunks, ALiBi, dropout) and for machines without it. Tiles of queries and keys in shared memory, a running
// maximum (FlashAttention's recurrence), f32 arithmetic; with documents, windows, chunks, ALiBi or dropout, GEMMs of
// 16 bits go through tensor cores.
//
// Enters: one block of queries of every head and sequence against one block of keys, in f32, bf16 or f16, heads at most
// 256 wide. Leaves: y and the log-sum-exp of each row, or the gradients; always in the same order of sums, without
// atomics.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "base/dtype.h"
#include "ops/attention_window.h"

namespace sextant::cuda {

// The rows of all heads of one operand: element j of row i is at data[b·batch + head·this->head + i·row + j].
struct HeadRows {
  void* data = nullptr;
  int64_t batch = 0, head = 0, row = 0;
};

// Weights that are left out after the softmax (exec/dropout_mask.h), unless keys is null.
struct BlockDropout {
  const uint64_t* keys = nullptr;  // in device memory, one per sequence
  uint32_t site = 0;
  uint32_t first_head = 0;  // of the model: head 0 here
  uint32_t threshold = 0;
  float factor = 1;                // of what is kept
  int64_t query_0 = 0, key_0 = 0;  // positions of query 0 and key 0; further ones as AttentionBlock has them
};

// Parameters that forward and backward share. Query head h reads key head h·kv_heads/heads.
struct AttentionBlock {
  DType dtype = DType::f32;
  int64_t batch = 0, heads = 0, kv_heads = 0;
  int64_t dim = 0, value_dim = 0;  // of queries and keys; of values and y
  int64_t queries = 0, keys = 0;
  int64_t diagonal = 0;  // query i sees the keys up to i + diagonal; not negative
  const int32_t* start =
      nullptr;  // in device memory: the diagonal, and keys is this + queries; then `keys` says nothing
  // In device memory: a query at position p sees keys from position min(begins[b·lse_length + i], p) on. Null: from 0
  // on. With it there is no `start`.
  const int32_t* begins = nullptr;
  int64_t distance = 0;  // how many positions query 0 stands after key 0 (with `start`, that many)
  int64_t stride = 1;    // positions from one query or key to the next
  KeyRange range;        // which keys up to its own position a query sees
  int64_t key_0 = 0;     // the position of key 0
  // ALiBi, unless alibi_heads is 0: the score of a key falls by the head's slope with every position that it lies
  // before its query. Head 0 here is head first_head of the model's alibi_heads.
  int alibi_heads = 0, first_head = 0;
  float scale = 0;                // of scores; 0 = 1/sqrt(dim)
  const int32_t* done = nullptr;  // in device memory: where it is not 0, this has been done otherwise; null: never
  BlockDropout dropout;
  HeadRows q, k, v;
  float* lse = nullptr;  // of query i of a head: lse[(b·heads + head)·lse_length + i]; may be null where it is a result
  int64_t lse_length = 0;
};

enum class Onto : uint8_t {
  nothing,   // results are written over whatever is there
  existing,  // y and lse: joined with those of other keys; gradients: added
};

struct AttentionForward : AttentionBlock {
  HeadRows y;
  Onto onto = Onto::nothing;
  // Of `dtype`, a score for each head that every query sees and that has no value; null: none. With `start` only.
  const void* sinks = nullptr;
};

struct AttentionGradient : AttentionBlock {
  HeadRows dy;
  const float* dots = nullptr;  // Σ dy·y of each query, indexed like lse
  HeadRows dq, dk, dv;
  Onto onto = Onto::nothing;
};

constexpr int64_t kLargestHead = 256;
[[noreturn]] void refuse_head_size(int64_t dim);  // RunError; the kernels call it beyond kLargestHead

void attend(const AttentionForward& block, cudaStream_t stream);
// The lse of rows that have seen no key yet, −∞: what blocks are then joined with.
void clear_lse(float* lse, int64_t count, cudaStream_t stream);
void attend_backward(const AttentionGradient& block, cudaStream_t stream);

// dots[b, head, i] = Σ dy·y over the head's part of row i; dy and y are [batch, length, heads·dim], dim being that of
// values.
struct OutputDots {
  DType dtype = DType::f32;
  int64_t batch = 0, length = 0, heads = 0, dim = 0;
  const void *dy = nullptr, *y = nullptr;
  float* dots = nullptr;
  const int32_t* done = nullptr;  // as in AttentionBlock
};
void output_dots(const OutputDots& rows, cudaStream_t stream);

}  // namespace sextant::cuda
