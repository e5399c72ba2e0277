// Softmax cross-entropy row by row, written over the logits. Enters: logits of a part of the tokens. Leaves: one loss
// per row and, when asked for, the gradient in place of the logits. What a row's loss is stands in ops/head_loss.cpp.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "exec/tensor.h"

namespace sextant::cuda {

struct LogitRows {
  void* logits;  // [rows, stride], f32, bf16 or f16
  DType dtype;
  int64_t rows;
  int64_t vocabulary;  // real columns of this rank; the rest of a row is padding, whose gradient is 0
  int64_t stride;
  const int32_t* targets = nullptr;  // ids in the whole vocabulary; a row with a negative one does not count
  const Tensor* w = nullptr;         // tells which ids this rank has
  double z_loss = 0;
  const float* dloss = nullptr;  // null: only the loss is wanted, and the logits stay as they are
  // The log-sum-exps [groups, parts_rows] of all parts of the vocabulary, from the first of these rows on; null when
  // the vocabulary is whole.
  const float* parts = nullptr;
  int64_t groups = 0;
  int64_t parts_rows = 0;
  float* losses = nullptr;  // [rows]
  cudaStream_t stream = nullptr;
};

// The loss of a row is counted by the rank that has its target; the others give 0.
void cross_entropy_rows(const LogitRows& rows);

// losses = the log-sum-exp of each row; −inf where this rank has no real column. targets to parts_rows are not read.
void log_sum_exp_rows(const LogitRows& rows);

// out = Σ x, added up in double.
void sum_numbers(const float* x, int64_t n, float* out, cudaStream_t stream);

}  // namespace sextant::cuda
