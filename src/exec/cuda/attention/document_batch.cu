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

__device__ inline bool ends_document(const int32_t* begins, int64_t at, int64_t length) {
  return at + 1 == length || begins_document(begins, at + 1);
}

__device__ inline int length_class(int64_t tokens) {
  return tokens > kLongestMiddle ? 0 : tokens > kLongestShort ? 1 : 2;
}

__device__ inline int64_t sum_over_block(int64_t x) {
  x = block_sum<kDocumentThreads>(x);
  __syncthreads();
  return x;
}

// Of each sequence: its documents by length.
__global__ void __launch_bounds__(kDocumentThreads)
    count_documents(const int32_t* begins, int64_t length, int32_t* counts) {
  begins += blockIdx.x * length;
  int64_t count[kDocumentLengths] = {};
  int wrong = 0;
  for (int64_t at = threadIdx.x; at < length; at += kDocumentThreads) {
    wrong += !begins_document(begins, at) && (at == 0 || begins[at] != begins[at - 1]);
    if (ends_document(begins, at, length)) ++count[length_class(at + 1 - begins[at])];
  }
  wrong = __syncthreads_or(wrong);
  for (size_t i = 0; i < kDocumentLengths; ++i) {
    int64_t all = sum_over_block(count[i]);
    if (threadIdx.x == 0) counts[blockIdx.x * kDocumentLengths + i] = wrong ? kNoDocuments : static_cast<int32_t>(all);
  }
}

// Division of all sequences, as one thread block needs it: the part for documents of each length class, the number of
// documents in each part, and how many of them precede the block's own sequence.
struct Division {
  int part_of[kDocumentLengths];
  int64_t filled[kDocumentParts], before[kDocumentParts];
  DocumentWay way;
  __device__ bool fits() const { return way != DocumentWay::own; }
};

__device__ Division divide(const DocumentBatch& batch) {
  int64_t all[kDocumentLengths] = {}, before[kDocumentLengths] = {};
  for (int64_t sequence = threadIdx.x; sequence < batch.batch; sequence += kDocumentThreads)
    for (size_t i = 0; i < kDocumentLengths; ++i) {
      int64_t count = batch.counts[sequence * kDocumentLengths + i];
      all[i] += count;
      if (sequence < blockIdx.x) before[i] += count;
    }
  int64_t documents = 0;
  for (size_t i = 0; i < kDocumentLengths; ++i) {
    all[i] = sum_over_block(all[i]);
    before[i] = sum_over_block(before[i]);
    documents += all[i];
  }
  Division division{};
  using enum DocumentWay;
  division.way = all[0] == 0 ? none_long : all[0] <= batch.rooms[1] ? few_long : many_long;
  if (documents <= batch.rooms[0]) division.way = together;
  for (int i = 0; i < static_cast<int>(kDocumentLengths); ++i) {
    int part = division.way == together ? 0 : i > 0 ? i + 1 : division.way == few_long ? 1 : 0;
    division.part_of[i] = part;
    division.filled[part] += all[i];
    division.before[part] += before[i];
  }
  for (size_t part = 0; part < kDocumentParts; ++part)
    if (documents <= 0 || division.filled[part] > batch.rooms[part]) division.way = own;
  return division;
}

__device__ inline void place(const DocumentBatch& batch, int part, int64_t document, int64_t first, int64_t length) {
  if (document < batch.rooms[part]) batch.lengths[part][document] = static_cast<int32_t>(length);
#pragma unroll
  for (size_t rows = 0; rows < kDocumentRows; ++rows) batch.offsets[part][rows][document] = first * batch.widths[rows];
}

// Fills the rest of each part with empty documents.
__device__ void place_rest(const DocumentBatch& batch, const Division& division) {
  const int64_t positions = batch.batch * batch.length;
  for (int part = 0; part < static_cast<int>(kDocumentParts); ++part) {
    int64_t filled = division.fits() ? division.filled[part] : 0;
    for (int64_t i = filled + threadIdx.x; i <= batch.rooms[part]; i += kDocumentThreads)
      place(batch, part, i, division.fits() ? positions : 0, 0);
  }
  if (threadIdx.x == 0) *batch.fits = division.fits(), *batch.way = static_cast<int32_t>(division.way);
}

// A block has a sequence, and takes kDocumentThreads of its positions at a time; a document is placed by its last.
__global__ void __launch_bounds__(kDocumentThreads)
    place_documents(const int32_t* begins, const __grid_constant__ DocumentBatch batch) {
  constexpr int kWarps = kDocumentThreads / 32, kParts = static_cast<int>(kDocumentParts);
  __shared__ int of_warps[kParts][kWarps];
  Division division = divide(batch);
  if (blockIdx.x == 0) place_rest(batch, division);
  if (!division.fits()) return;
  const int64_t first_position = static_cast<int64_t>(blockIdx.x) * batch.length;
  begins += first_position;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  for (int64_t from = 0; from < batch.length; from += kDocumentThreads) {
    const int64_t at = from + threadIdx.x;
    const bool last = at < batch.length && ends_document(begins, at, batch.length);
    const int64_t tokens = last ? at + 1 - begins[at] : 0;
    const int its = last ? division.part_of[length_class(tokens)] : -1;
    int within = 0;  // documents of its part before it, in its warp
    for (int part = 0; part < kParts; ++part) {
      const unsigned of_warp = __ballot_sync(kWholeWarp, its == part);
      if (lane == 0) of_warps[part][warp] = __popc(of_warp);
      if (its == part) within = __popc(of_warp & ((1u << lane) - 1));
    }
    __syncthreads();
    int64_t document = within;
    for (int part = 0; part < kParts; ++part) {
      if (its == part) document += division.before[part];
      for (int other = 0; other < kWarps; ++other) {
        if (its == part && other < warp) document += of_warps[part][other];
        division.before[part] += of_warps[part][other];
      }
    }
    if (last) place(batch, its, document, first_position + begins[at], tokens);
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
      widths(document_row_widths(shape)),
      counts(reinterpret_cast<int32_t*>(workspace + sizes.counts)),
      fits(reinterpret_cast<int32_t*>(workspace + sizes.fits)),
      way(reinterpret_cast<int32_t*>(workspace + sizes.way)),
      stats(reinterpret_cast<float*>(workspace + sizes.stats)),
      dots(reinterpret_cast<float*>(workspace + sizes.dots)),
      dk(has_own_kv_gradients(shape) ? workspace + sizes.dk : nullptr),
      dv(has_own_kv_gradients(shape) ? workspace + sizes.dv : nullptr) {
  const std::array<DocumentPart, kDocumentParts> parts = document_parts(shape);
  for (size_t part = 0; part < kDocumentParts; ++part) {
    rooms[part] = parts[part].room;
    lengths[part] = reinterpret_cast<int32_t*>(workspace + sizes.lengths[part]);
    for (size_t rows = 0; rows < kDocumentRows; ++rows)
      offsets[part][rows] = reinterpret_cast<int64_t*>(workspace + sizes.offsets[part][rows]);
  }
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
