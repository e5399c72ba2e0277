#include "base/units.h"
#include "exec/cuda/attention/document_batch.h"
#include "exec/cuda/kernels/reduce.cuh"

namespace sextant::cuda {

namespace {

constexpr int kDocumentThreads = 256;
constexpr int kNoDocuments = -(1 << 30);  // of a sequence whose begins are none: more than any count makes up for

// A position begins a document, or is of the same as the one before it.
__device__ inline bool begins_document(const int32_t* begins, int64_t at) {
  return begins[at] == at;
}

__global__ void __launch_bounds__(kDocumentThreads)
    count_documents(const int32_t* begins, int64_t length, int32_t* counts) {
  begins += blockIdx.x * length;
  int count = 0, wrong = 0;
  for (int64_t at = threadIdx.x; at < length; at += kDocumentThreads) {
    bool first = begins_document(begins, at);
    count += first;
    wrong += !first && (at == 0 || begins[at] != begins[at - 1]);
  }
  wrong = __syncthreads_or(wrong);
  count = block_sum<kDocumentThreads>(count);
  if (threadIdx.x == 0) counts[blockIdx.x] = wrong ? kNoDocuments : count;
}

// What a block of threads knows of all sequences: documents in all, and before its own.
struct DocumentCounts {
  int64_t all, before;
};

__device__ DocumentCounts sum_counts(const DocumentBatch& batch) {
  int64_t all = 0, before = 0;
  for (int64_t sequence = threadIdx.x; sequence < batch.batch; sequence += kDocumentThreads) {
    int64_t count = batch.counts[sequence];
    all += count;
    if (sequence < blockIdx.x) before += count;
  }
  all = block_sum<kDocumentThreads>(all);
  __syncthreads();
  before = block_sum<kDocumentThreads>(before);
  __syncthreads();
  return {all, before};
}

__device__ inline void place(const DocumentBatch& batch, int64_t document, int64_t first, int64_t length) {
  if (document < batch.capacity) batch.lengths[document] = static_cast<int32_t>(length);
#pragma unroll
  for (size_t rows = 0; rows < kDocumentRows; ++rows) batch.offsets[rows][document] = first * batch.widths[rows];
}

// A block has a sequence, and takes kDocumentThreads of its positions at a time; a document is placed by its last.
__global__ void __launch_bounds__(kDocumentThreads)
    place_documents(const int32_t* begins, const __grid_constant__ DocumentBatch batch) {
  constexpr int kWarps = kDocumentThreads / 32;
  __shared__ int of_warps[kWarps];
  const DocumentCounts counts = sum_counts(batch);
  const bool fits = counts.all > 0 && counts.all <= batch.capacity;
  if (blockIdx.x == 0) {
    const int64_t positions = batch.batch * batch.length;
    for (int64_t i = (fits ? counts.all : 0) + threadIdx.x; i <= batch.capacity; i += kDocumentThreads)
      place(batch, i, fits ? positions : 0, 0);
    if (threadIdx.x == 0) *batch.fits = fits;
  }
  if (!fits) return;
  const int64_t first_position = static_cast<int64_t>(blockIdx.x) * batch.length;
  begins += first_position;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  int64_t before = counts.before;
  for (int64_t from = 0; from < batch.length; from += kDocumentThreads) {
    const int64_t at = from + threadIdx.x;
    const bool last = at < batch.length && (at + 1 == batch.length || begins_document(begins, at + 1));
    const unsigned of_warp = __ballot_sync(kWholeWarp, last);
    if (lane == 0) of_warps[warp] = __popc(of_warp);
    __syncthreads();
    int64_t document = before + __popc(of_warp & ((1u << lane) - 1));
    for (int other = 0; other < kWarps; ++other) {
      if (other < warp) document += of_warps[other];
      before += of_warps[other];
    }
    if (last) place(batch, document, first_position + begins[at], at + 1 - begins[at]);
    __syncthreads();  // of_warps is written again
  }
}

enum class Towards : uint8_t { lse, stats };

template <Towards kTowards>
__global__ void __launch_bounds__(kDocumentThreads)
    turn_statistics(const __grid_constant__ DocumentBatch batch, float* lse) {
  if (*batch.fits == 0) return;
  int64_t i = static_cast<int64_t>(blockIdx.x) * kDocumentThreads + threadIdx.x;
  if (i >= batch.batch * batch.heads * batch.length) return;
  int64_t at = i % batch.length, head = i / batch.length % batch.heads, sequence = i / batch.length / batch.heads;
  float& row = batch.stats[(sequence * batch.length + at) * batch.heads + head];
  if constexpr (kTowards == Towards::lse)
    lse[i] = row;
  else
    row = lse[i];
}

template <Towards kTowards>
void turn(const DocumentBatch& batch, float* lse, cudaStream_t stream) {
  auto blocks = static_cast<unsigned>(ceil_div(batch.batch * batch.heads * batch.length, kDocumentThreads));
  turn_statistics<kTowards><<<blocks, kDocumentThreads, 0, stream>>>(batch, lse);
}

// A block has a row; widths are multiples of 8, and so are the places of dk and dv in it.
__global__ void __launch_bounds__(kDocumentThreads)
    join_rows(const __grid_constant__ DocumentBatch batch, uint4* dqkv) {
  if (*batch.fits == 0) return;
  const int64_t row = blockIdx.x, width = batch.widths[static_cast<size_t>(DocumentRows::qkv)] / 8,
                k = batch.widths[static_cast<size_t>(DocumentRows::dk)] / 8,
                v = batch.widths[static_cast<size_t>(DocumentRows::dv)] / 8;
  const auto *dk = static_cast<const uint4*>(batch.dk) + row * k, *dv = static_cast<const uint4*>(batch.dv) + row * v;
  uint4* to = dqkv + row * width + width - k - v;
  for (int64_t i = threadIdx.x; i < k + v; i += kDocumentThreads) to[i] = i < k ? dk[i] : dv[i - k];
}

}  // namespace

DocumentBatch::DocumentBatch(const AttentionShape& shape, const DocumentBatchSizes& sizes, std::byte* workspace)
    : batch(shape.batch),
      length(shape.length),
      heads(shape.heads),
      capacity(shape.capacity),
      widths(document_row_widths(shape)),
      counts(reinterpret_cast<int32_t*>(workspace + sizes.counts)),
      fits(reinterpret_cast<int32_t*>(workspace + sizes.fits)),
      lengths(reinterpret_cast<int32_t*>(workspace + sizes.lengths)),
      stats(reinterpret_cast<float*>(workspace + sizes.stats)),
      dots(reinterpret_cast<float*>(workspace + sizes.dots)),
      dk(has_own_kv_gradients(shape) ? workspace + sizes.dk : nullptr),
      dv(has_own_kv_gradients(shape) ? workspace + sizes.dv : nullptr) {
  for (size_t rows = 0; rows < kDocumentRows; ++rows)
    offsets[rows] = reinterpret_cast<int64_t*>(workspace + sizes.offsets[rows]);
}

void find_documents(const int32_t* begins, const DocumentBatch& batch, cudaStream_t stream) {
  auto sequences = static_cast<unsigned>(batch.batch);
  count_documents<<<sequences, kDocumentThreads, 0, stream>>>(begins, batch.length, batch.counts);
  place_documents<<<sequences, kDocumentThreads, 0, stream>>>(begins, batch);
}

void stats_to_lse(const DocumentBatch& batch, float* lse, cudaStream_t stream) {
  turn<Towards::lse>(batch, lse, stream);
}

void lse_to_stats(const DocumentBatch& batch, const float* lse, cudaStream_t stream) {
  turn<Towards::stats>(batch, const_cast<float*>(lse), stream);
}

void join_kv_gradients(const DocumentBatch& batch, void* dqkv, cudaStream_t stream) {
  auto rows = static_cast<unsigned>(batch.batch * batch.length);
  join_rows<<<rows, kDocumentThreads, 0, stream>>>(batch, static_cast<uint4*>(dqkv));
}

}  // namespace sextant::cuda
