// Documents that are packed into sequences, as cuDNN's ragged batches have them: batches of documents of which each has
// a length and the place of its first row; those that there are not have length 0. Which batch a document is in goes by
// its length (targets/cuda/document_batch_sizes.h). All of it is found on the device from the positions at which
// documents begin, so that a captured CUDA graph serves every microbatch.
//
// Where there are more documents than the batches hold, or where `begins` does not describe documents one behind the
// other, `fits` is 0 and every length is: cuDNN then does nothing, and our own kernels, which read `fits`, do the work.
// `way` says to a graph which of them to run (DocumentWay).
//
// Enters: begins [batch, length] in i32. Leaves: lengths, offsets, fits, way; log-sum-exps in cuDNN's order and back.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "targets/cuda/document_batch_sizes.h"

namespace sextant::cuda {

struct DocumentBatch {
  DocumentBatch(const AttentionShape& shape, const DocumentBatchSizes& sizes, std::byte* workspace);

  int64_t batch, length, heads;
  std::array<int64_t, kDocumentParts> rooms;
  std::array<int64_t, kDocumentRows> widths;
  int32_t *counts, *fits, *way;
  std::array<int32_t*, kDocumentParts> lengths;
  std::array<std::array<int64_t*, kDocumentRows>, kDocumentParts> offsets;
  float* stats;   // [batch·length, heads], as ragged rows are
  float* dots;    // of our own kernels
  void *dk, *dv;  // [batch·length, width]; null where cuDNN writes into dqkv
};

void find_documents(const int32_t* begins, const DocumentBatch& batch, cudaStream_t stream);
// stats to lse [batch, heads, length], and back. Only where the documents fit.
void stats_to_lse(const DocumentBatch& batch, float* lse, cudaStream_t stream);
void lse_to_stats(const DocumentBatch& batch, const float* lse, cudaStream_t stream);
// dk and dv into rows of dqkv, of 16 bits, behind dq. Only where the documents fit.
void join_kv_gradients(const DocumentBatch& batch, void* dqkv, cudaStream_t stream);

}  // namespace sextant::cuda
