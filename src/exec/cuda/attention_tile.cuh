// Tiles of rows in shared memory, and the products that attention makes of them. A block has 256 threads in a square of
// 16×16: thread (ty, tx) makes R rows ty·R … of a result, and of each row every 16th score (tx, tx + 16, …) or four
// neighbouring elements of every 64 (4·tx, 64 + 4·tx, …). Rows are padded by 16 bytes so that 16-byte reads of 8 rows
// meet in no bank.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "exec/cuda/own_attention.h"

namespace sextant::cuda {

constexpr int kSide = 16;
constexpr int kTileThreads = kSide * kSide;

constexpr int pitch_of(int columns) { return columns + 4; }

__device__ inline int tile_x() { return static_cast<int>(threadIdx.x) % kSide; }
__device__ inline int tile_y() { return static_cast<int>(threadIdx.x) / kSide; }

__device__ inline float4 load_four(const float* from) { return *reinterpret_cast<const float4*>(from); }
__device__ inline float4 load_four(const __nv_bfloat16* from) {
  uint2 bits = *reinterpret_cast<const uint2*>(from);
  float2 low = __bfloat1622float2(reinterpret_cast<const __nv_bfloat162&>(bits.x));
  float2 high = __bfloat1622float2(reinterpret_cast<const __nv_bfloat162&>(bits.y));
  return {low.x, low.y, high.x, high.y};
}

template <class T>
__device__ const T* rows_of(const HeadRows& rows, int64_t b, int64_t head, int64_t first) {
  return static_cast<const T*>(rows.data) + b * rows.batch + head * rows.head + first * rows.row;
}

// kRows rows into shared memory as floats: `count` of them exist, `dim` elements of each; the rest is 0. Heads begin at
// multiples of dim, so dim alone says whether four elements lie together.
template <int kRows, int kDim, class T>
__device__ void load_tile(float* tile, const T* from, int64_t stride, int64_t count, int dim) {
  constexpr int pitch = pitch_of(kDim);
  if (dim % 4 == 0) {
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
void for_head_size(int64_t dim, const Body& body) {
  if (dim > kLargestHead) refuse_head_size(dim);
  if (dim <= 64)
    body.template operator()<64>();
  else if (dim <= 128)
    body.template operator()<128>();
  else
    body.template operator()<256>();
}

struct TileLaunch {
  int64_t tiles, heads, batch;
  int floats;  // of shared memory
  cudaStream_t stream;
};

template <class Block>
void launch_tiles(void (*kernel)(Block), const Block& block, const TileLaunch& launch) {
  size_t bytes = static_cast<size_t>(launch.floats) * sizeof(float);
  // Where this fails, so does the launch, which is checked.
  (void)cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
  dim3 grid(static_cast<unsigned>(launch.tiles), static_cast<unsigned>(launch.heads),
            static_cast<unsigned>(launch.batch));
  kernel<<<grid, kTileThreads, bytes, launch.stream>>>(block);
}

}  // namespace sextant::cuda
