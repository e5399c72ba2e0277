// Tiles of rows in shared memory, and the products that attention makes of them. A block has 256 threads in a square of
// 16×16: thread (ty, tx) makes R rows ty·R … of a result, and of each row every 16th score (tx, tx + 16, …) or four
// neighbouring elements of every 64 (4·tx, 64 + 4·tx, …). Rows are padded by 16 bytes so that 16-byte reads of 8 rows
// meet in no bank.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "exec/cuda/attention/own_attention.h"
#include "exec/cuda/runtime/philox.cuh"

namespace sextant::cuda {

constexpr int kSide = 16;
constexpr int kTileThreads = kSide * kSide;

constexpr int pitch_of(int columns) {
  return columns + 4;
}

__device__ inline bool done_otherwise(const int32_t* done) {
  return done && *done != 0;
}

__device__ inline int tile_x() {
  return static_cast<int>(threadIdx.x) % kSide;
}
__device__ inline int tile_y() {
  return static_cast<int>(threadIdx.x) / kSide;
}

__device__ inline float4 load_four(const float* from) {
  return *reinterpret_cast<const float4*>(from);
}
__device__ inline float4 load_four(const __nv_bfloat16* from) {
  uint2 bits = *reinterpret_cast<const uint2*>(from);
  float2 low = __bfloat1622float2(reinterpret_cast<const __nv_bfloat162&>(bits.x));
  float2 high = __bfloat1622float2(reinterpret_cast<const __nv_bfloat162&>(bits.y));
  return {low.x, low.y, high.x, high.y};
}

__device__ inline float4 load_four(const __half* from) {
  uint2 bits = *reinterpret_cast<const uint2*>(from);
  float2 low = __half22float2(reinterpret_cast<const __half2&>(bits.x));
  float2 high = __half22float2(reinterpret_cast<const __half2&>(bits.y));
  return {low.x, low.y, high.x, high.y};
}

template <class T>
__device__ const T* rows_of(const HeadRows& rows, int64_t b, int64_t head, int64_t first) {
  return static_cast<const T*>(rows.data) + b * rows.batch + head * rows.head + first * rows.row;
}

// Where the queries stand among the keys: see AttentionBlock.
struct Offsets {
  int64_t diagonal, distance;
};

__device__ inline Offsets offsets_of(const AttentionBlock& block) {
  return block.start ? Offsets{*block.start, *block.start} : Offsets{block.diagonal, block.distance};
}

// The first key at that position or behind it, and not before key 0. Positions count from key 0.
__device__ inline int64_t first_key_at(const AttentionBlock& block, int64_t position) {
  if (position <= 0) return 0;
  return block.stride == 1 ? position : (position + block.stride - 1) / block.stride;
}

// The first key that a query sees, which may lie behind all that there are; for a query that does not exist, a key
// behind all others.
__device__ inline int64_t first_seen(const AttentionBlock& block, int64_t b, int64_t row, Offsets at) {
  const int64_t window = block.range.window, chunk = block.range.chunk;
  if (!block.begins && window == 0 && chunk == 0) return 0;
  if (row >= block.queries) return row + at.diagonal;
  const int64_t own = row * block.stride + at.distance;  // positions behind key 0
  int64_t first = 0;
  if (block.begins) first = min(int64_t{block.begins[b * block.lse_length + row]} - block.key_0, own);
  if (window > 0) first = max(first, own - window + 1);
  if (chunk > 0) first = max(first, (block.key_0 + own) / chunk * chunk - block.key_0);
  return first_key_at(block, first);
}

// The first key that any of kQ queries sees. Every warp finds it for itself, so all threads of the block know it.
template <int kQ>
__device__ int64_t first_seen_by_any(const AttentionBlock& block, int64_t b, int64_t first, Offsets at) {
  if (!block.begins) return first_seen(block, b, first, at);  // ranges move on with their queries
  int64_t key = INT64_MAX;
  for (int i = threadIdx.x % 32; i < kQ; i += 32) key = min(key, first_seen(block, b, first + i, at));
  for (int other = 16; other > 0; other /= 2) key = min(key, __shfl_xor_sync(0xffffffff, key, other));
  return key;
}

// Behind the last query that sees a key before `key_end`, or more.
__device__ inline int64_t last_query_end(const AttentionBlock& block, int64_t key_end, Offsets at) {
  const int64_t window = block.range.window, chunk = block.range.chunk;
  const int64_t last = (key_end - 1) * block.stride;  // positions behind key 0
  int64_t end = block.queries;
  if (window > 0) end = min(end, first_key_at(block, last + window - at.distance));
  if (chunk > 0)
    end = min(end, first_key_at(block, ((block.key_0 + last) / chunk + 1) * chunk - block.key_0 - at.distance));
  return end;
}

// The slope of a head (exec/alibi.h); 0 without ALiBi.
__device__ inline float alibi_slope(const AttentionBlock& block, int64_t head) {
  if (block.alibi_heads == 0) return 0;
  int n = 1 << (31 - __clz(block.alibi_heads));  // the largest power of two among them
  float own = static_cast<float>(block.first_head + head), step = -8.0f / static_cast<float>(n);
  return own < static_cast<float>(n) ? exp2f(step * (own + 1)) : exp2f(step * (own - static_cast<float>(n) + 0.5f));
}

// Whether a kernel leaves out weights: those that do not are compiled by themselves, for the registers that it takes.
enum class Dropping : uint8_t { no, yes };

// Factor of the weight of a query and a key after the softmax; 0 for a dropped weight.
template <Dropping kDropping>
__device__ float dropout_factor(const AttentionBlock& block, int64_t b, int64_t head, int64_t row, int64_t key) {
  if constexpr (kDropping == Dropping::no) return 1;
  const BlockDropout& dropout = block.dropout;
  uint64_t site_and_head =
      static_cast<uint64_t>(dropout.site) << 32 | (dropout.first_head + static_cast<uint32_t>(head));
  uint32_t word = dropout_word(dropout.keys[b], site_and_head, dropout.query_0 + row * block.stride,
                               dropout.key_0 + key * block.stride);
  return word >= dropout.threshold ? dropout.factor : 0;
}

__device__ inline float score_scale(const AttentionBlock& block) {
  return block.scale != 0 ? block.scale : rsqrtf(static_cast<float>(block.dim));
}

// How rows are read: `dim` elements of each, four at a time where they lie together.
struct RowReads {
  int dim;
  bool fours;
};

// Heads begin at sums of multiples of the two widths, so the widths alone say whether four elements lie together.
__device__ inline bool in_fours(const AttentionBlock& block) {
  return block.dim % 4 == 0 && block.value_dim % 4 == 0;
}
__device__ inline RowReads key_reads(const AttentionBlock& block) {
  return {static_cast<int>(block.dim), in_fours(block)};
}
__device__ inline RowReads value_reads(const AttentionBlock& block) {
  return {static_cast<int>(block.value_dim), in_fours(block)};
}

// kRows rows into shared memory as floats: `count` of them exist; the rest is 0.
template <int kRows, int kDim, class T>
__device__ void load_tile(float* tile, const T* from, int64_t stride, int64_t count, RowReads reads) {
  constexpr int pitch = pitch_of(kDim);
  const int dim = reads.dim;
  if (reads.fours) {
    constexpr int pieces = kDim / 4;
    for (int i = threadIdx.x; i < kRows * pieces; i += kTileThreads) {
      int row = i / pieces, column = i % pieces * 4;
      float4 x = row < count && column < dim ? load_four(from + row * stride + column) : float4{0, 0, 0, 0};
      *reinterpret_cast<float4*>(tile + row * pitch + column) = x;
    }
  } else {
    for (int i = threadIdx.x; i < kRows * kDim; i += kTileThreads) {
      int row = i / kDim, column = i % kDim;
      tile[row * pitch + column] = row < count && column < dim ? static_cast<float>(from[row * stride + column]) : 0.0f;
    }
  }
}

// products[i][j] = Σ a·b of row ty·R + i of a and row tx + 16·j of b.
template <int kDim, int kR, int kC>
__device__ void row_products(const float* a, const float* b, int dim, float (&products)[kR][kC]) {
  constexpr int pitch = pitch_of(kDim);
  const float* a_rows = a + tile_y() * kR * pitch;
  const float* b_rows = b + tile_x() * pitch;
#pragma unroll
  for (int i = 0; i < kR; ++i)
#pragma unroll
    for (int j = 0; j < kC; ++j) products[i][j] = 0;
#pragma unroll 2
  for (int d = 0; d < dim; d += 4) {  // up to three zeros behind the last element
    float4 x[kR], y[kC];
#pragma unroll
    for (int i = 0; i < kR; ++i) x[i] = load_four(a_rows + i * pitch + d);
#pragma unroll
    for (int j = 0; j < kC; ++j) y[j] = load_four(b_rows + j * kSide * pitch + d);
#pragma unroll
    for (int i = 0; i < kR; ++i)
#pragma unroll
      for (int j = 0; j < kC; ++j) {
        products[i][j] = fmaf(x[i].x, y[j].x, products[i][j]);
        products[i][j] = fmaf(x[i].y, y[j].y, products[i][j]);
        products[i][j] = fmaf(x[i].z, y[j].z, products[i][j]);
        products[i][j] = fmaf(x[i].w, y[j].w, products[i][j]);
      }
  }
}

// Where a weight lies: that of result row i and summed row k at [i·row + k·k].
struct Weights {
  const float* data;
  int row, k;
};

// sums[i] += Σ over kCount rows k of weight(ty·R + i, k) · row k; a thread has kDim / 16 elements of each of its rows.
template <int kDim, int kCount, int kR>
__device__ void add_weighted_rows(Weights weights, const float* rows, float (&sums)[kR][kDim / kSide]) {
  const float* weight = weights.data + tile_y() * kR * weights.row;
#pragma unroll 4
  for (int k = 0; k < kCount; ++k) {
    float w[kR];
#pragma unroll
    for (int i = 0; i < kR; ++i) w[i] = weight[i * weights.row + k * weights.k];
#pragma unroll
    for (int c = 0; c < kDim / 64; ++c) {
      float4 x = load_four(rows + k * pitch_of(kDim) + c * 64 + tile_x() * 4);
#pragma unroll
      for (int i = 0; i < kR; ++i) {
        sums[i][c * 4 + 0] = fmaf(w[i], x.x, sums[i][c * 4 + 0]);
        sums[i][c * 4 + 1] = fmaf(w[i], x.y, sums[i][c * 4 + 1]);
        sums[i][c * 4 + 2] = fmaf(w[i], x.z, sums[i][c * 4 + 2]);
        sums[i][c * 4 + 3] = fmaf(w[i], x.w, sums[i][c * 4 + 3]);
      }
    }
  }
}

// Calls body(column, value&) for the thread's elements of one result row that exist.
template <int kDim, class Body>
__device__ void for_columns(float (&row)[kDim / kSide], int dim, const Body& body) {
#pragma unroll
  for (int c = 0; c < kDim / 64; ++c)
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      int column = c * 64 + tile_x() * 4 + e;
      if (column < dim) body(column, row[c * 4 + e]);
    }
}

// Over the 16 threads that share a row.
__device__ inline float row_maximum(float x) {
  for (int other = kSide / 2; other > 0; other /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, other));
  return x;
}
__device__ inline float row_sum(float x) {
  for (int other = kSide / 2; other > 0; other /= 2) x += __shfl_xor_sync(0xffffffff, x, other);
  return x;
}

// Calls body.template operator()<kDim>() with the smallest tile width that holds a head.
template <class Body>
void for_head_size(const AttentionBlock& block, const Body& body) {
  int64_t dim = std::max(block.dim, block.value_dim);
  if (dim > kLargestHead) refuse_head_size(dim);
  if (dim <= 64)
    body.template operator()<64>();
  else if (dim <= 128)
    body.template operator()<128>();
  else
    body.template operator()<256>();
}

struct TileLaunch {
  int64_t tiles, heads, batch;  // of the grid
  int floats;                   // of shared memory
  cudaStream_t stream;
  int threads = kTileThreads;
};

template <class Block>
void launch_tiles(void (*kernel)(Block), const Block& block, const TileLaunch& launch) {
  size_t bytes = static_cast<size_t>(launch.floats) * sizeof(float);
  // Where this fails, so does the launch, which is checked.
  (void)cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
  dim3 grid(static_cast<unsigned>(launch.tiles), static_cast<unsigned>(launch.heads),
            static_cast<unsigned>(launch.batch));
  kernel<<<grid, launch.threads, bytes, launch.stream>>>(block);
}

// How many sequences of the batch the grid of a kernel on tensor cores has; its blocks go on to the others. Where the
// work may have been done otherwise, no more than fill a large device: blocks that find nothing to do cost time, too.
inline int64_t sequences_at_once(const AttentionBlock& block, int64_t tiles_of_one) {
  constexpr int64_t kEnoughTiles = 1024;
  return block.done ? std::min(block.batch, ceil_div(kEnoughTiles, tiles_of_one)) : block.batch;
}

// Calls body.template operator()<kDropping>() as the block says.
template <class Body>
void for_dropping(const AttentionBlock& block, const Body& body) {
  if (block.dropout.keys)
    body.template operator()<Dropping::yes>();
  else
    body.template operator()<Dropping::no>();
}

// The same on tensor cores, for T of 16 bits, bf16 or f16: tiles stay so in shared memory, and a block's four warps
// make 16 rows each of
// 64. Of a result, a thread has rows core_row() and the one 8 below, and of every 8 columns core_column() and the next:
// elements 0, 1 and 2, 3 of a fragment.
constexpr int kCoreThreads = 128;
constexpr int kCoreRows = 64;

template <int kColumns>
using Fragments = float[kColumns / 8][4];

constexpr int core_pitch(int columns) {
  return columns + 8;
}

__device__ inline int core_row() {
  return static_cast<int>(threadIdx.x) / 32 * 16 + static_cast<int>(threadIdx.x) % 32 / 4;
}
__device__ inline int core_column() {
  return static_cast<int>(threadIdx.x) % 4 * 2;
}
template <class T>
__device__ inline uint32_t pair_at(const T* at) {
  static_assert(sizeof(T) == 2);
  return *reinterpret_cast<const uint32_t*>(at);
}
template <class T>
__device__ inline uint32_t pair_of(float low, float high) {
  if constexpr (std::is_same_v<T, __half>) {
    __half2 pair = __floats2half2_rn(low, high);
    return reinterpret_cast<const uint32_t&>(pair);
  } else {
    __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return reinterpret_cast<const uint32_t&>(pair);
  }
}

// Heads of one width whose rows can be read four elements at a time, of whole sequences with documents, ALiBi, windows,
// chunks or dropout.
template <class Block>
bool cores_take(const Block& block) {
  bool whole =
      block.onto == Onto::nothing && !block.start && block.lse && block.distance == block.diagonal && block.stride == 1;
  bool masked = whole && (block.begins || block.alibi_heads > 0 || !block.range.whole() || block.dropout.keys);
  return size_of(block.dtype) == 2 && masked && block.dim == block.value_dim && block.dim % 4 == 0 && block.dim <= 128;
}

// body.template operator()<T, kDim>() for such a block.
template <class Body>
void for_core_type(const AttentionBlock& block, const Body& body) {
  auto with_size = [&]<class T>() {
    block.dim <= 64 ? body.template operator()<T, 64>() : body.template operator()<T, 128>();
  };
  if (block.dtype == DType::f16)
    with_size.template operator()<__half>();
  else
    with_size.template operator()<__nv_bfloat16>();
}

// As load_tile, in pieces of 8 or 16 bytes.
template <int kRows, int kDim, class Piece, class T>
__device__ void load_pieces(T* tile, const T* from, int64_t stride, int64_t count, int dim) {
  constexpr int wide = sizeof(Piece) / sizeof(T), pieces = kDim / wide;
  for (int i = threadIdx.x; i < kRows * pieces; i += kCoreThreads) {
    int row = i / pieces, column = i % pieces * wide;
    bool exists = row < count && column < dim;
    Piece x = exists ? *reinterpret_cast<const Piece*>(from + row * stride + column) : Piece{};
    *reinterpret_cast<Piece*>(tile + row * core_pitch(kDim) + column) = x;
  }
}

template <int kRows, int kDim, class T>
__device__ void load_core_tile(T* tile, const T* from, int64_t stride, int64_t count, int dim) {
  if (dim % 8 == 0)
    load_pieces<kRows, kDim, uint4>(tile, from, stride, count, dim);
  else
    load_pieces<kRows, kDim, uint2>(tile, from, stride, count, dim);
}

// c += a·b for 16×16 of a and 16×8 of b.
template <class T>
__device__ inline void core_product(float (&c)[4], const uint32_t (&a)[4], uint32_t b_top, uint32_t b_bottom) {
  if constexpr (std::is_same_v<T, __half>)
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b_top), "r"(b_bottom));
  else
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b_top), "r"(b_bottom));
}

// products = a·bᵀ: rows of a (64, the warp's 16 of them) against kN rows of b.
template <int kDim, int kN, class T>
__device__ void core_row_products(const T* a, const T* b, Fragments<kN>& products) {
  constexpr int pitch = core_pitch(kDim);
  const T* a_row = a + core_row() * pitch + core_column();
  const T* b_row = b + static_cast<int>(threadIdx.x) % 32 / 4 * pitch + core_column();
#pragma unroll
  for (int n = 0; n < kN / 8; ++n)
#pragma unroll
    for (int e = 0; e < 4; ++e) products[n][e] = 0;
#pragma unroll
  for (int d = 0; d < kDim; d += 16) {
    uint32_t part[4] = {pair_at(a_row + d), pair_at(a_row + 8 * pitch + d), pair_at(a_row + d + 8),
                        pair_at(a_row + 8 * pitch + d + 8)};
#pragma unroll
    for (int n = 0; n < kN / 8; ++n)
      core_product<T>(products[n], part, pair_at(b_row + n * 8 * pitch + d), pair_at(b_row + n * 8 * pitch + d + 8));
  }
}

// sums += weights·rows, over kN rows; a product's fragments are the left side of the next as they are.
template <int kDim, int kN, class T>
__device__ void add_core_rows(const Fragments<kN>& weights, const T* rows, Fragments<kDim>& sums) {
  constexpr int pitch = core_pitch(kDim);
  const T* row = rows + static_cast<int>(threadIdx.x) % 16 * pitch;
#pragma unroll
  for (int k = 0; k < kN / 16; ++k) {
    const float(&left)[4] = weights[2 * k], (&right)[4] = weights[2 * k + 1];
    uint32_t part[4] = {pair_of<T>(left[0], left[1]), pair_of<T>(left[2], left[3]), pair_of<T>(right[0], right[1]),
                        pair_of<T>(right[2], right[3])};
#pragma unroll
    for (int n = 0; n < kDim / 8; ++n) {
      uint32_t top, bottom;  // of 16 rows, 8 columns, turned
      asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
                   : "=r"(top), "=r"(bottom)
                   : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(row + k * 16 * pitch + n * 8))));
      core_product<T>(sums[n], part, top, bottom);
    }
  }
}

// Calls body.template operator()<kN>() with the narrowest tile that holds `columns`, of kMost at most: of documents a
// little longer or shorter than a tile most of a second one is hidden.
template <int kMost, class Body>
__device__ void for_core_columns(int64_t columns, const Body& body) {
  static_assert(kMost == 32 || kMost == 64);
  if (columns <= 16)
    body.template operator()<16>();
  else if (kMost == 32 || columns > 32)
    body.template operator()<kMost>();
  else
    body.template operator()<32>();
}

// Over the four threads that share a row.
__device__ inline float core_row_maximum(float x) {
  for (int other = 2; other > 0; other /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, other));
  return x;
}
__device__ inline float core_row_sum(float x) {
  for (int other = 2; other > 0; other /= 2) x += __shfl_xor_sync(0xffffffff, x, other);
  return x;
}

// Rows of a head from `first` on, of `count` in all; each times a factor of its own.
struct CoreRows {
  int64_t sequence, head, first, count;
  int dim;
  float factors[2] = {1, 1};
};

template <class T, int kDim>
__device__ void write_core_rows(const HeadRows& to, const CoreRows& tile, const Fragments<kDim>& sums) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    int64_t row = tile.first + core_row() + 8 * half;
    if (row >= tile.count) continue;
    T* at = const_cast<T*>(rows_of<T>(to, tile.sequence, tile.head, row));
#pragma unroll
    for (int n = 0; n < kDim / 8; ++n) {
      int column = n * 8 + core_column();
      float low = sums[n][2 * half] * tile.factors[half], high = sums[n][2 * half + 1] * tile.factors[half];
      if (column < tile.dim) *reinterpret_cast<uint32_t*>(at + column) = pair_of<T>(low, high);
    }
  }
}

}  // namespace sextant::cuda
